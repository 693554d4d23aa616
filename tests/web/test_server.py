"""The server of the live page, over real connections: who is answered, with what, and what it bears."""

import json
import socket
import threading
import time
from http.server import HTTPServer

import pytest

from tests.web.shown import CHAIN, asked, batches, known
from wjoin.grammar.errors import WJoinError
from wjoin.testing.waiting import until
from wjoin.web import page_server
from wjoin.web.page_access import Address
from wjoin.web.page_server import bound

TOKEN = "x" * 24
QUERIES = [
    known(reports=batches(10)),
    known("other", CHAIN, batches(5, stages=2), state="failed", error="no"),
]


@pytest.fixture
def serve():
    """Return a function that serves queries; all ends with the test."""
    served = []

    def begin(queries=QUERIES, address=Address(port=0), token=None):  # noqa: B008 (it is never changed)
        web = bound(address, token).begin(lambda: queries, lambda: None)
        served.append(web)
        return web

    yield begin
    for each in served:
        each.close()


@pytest.mark.parametrize(
    ("path", "kind", "inside"),
    [
        ("/", "text/html", '<script src="live.js" defer'),
        ("/live.css", "text/css", ".wjoin-plan"),
        ("/live.js", "text/javascript", "use strict"),
        ("/metrics", "text/plain; version=0.0.4", 'wjoin_query_up{query="pairs"} 1'),
        ("/api/queries", "application/json", '"run": "run-of-other"'),
        ("/api/queries/run-of-pairs", "application/json", '"whole": true'),
        ("/api/queries/run-of-pairs?since=1&width=1", "application/json", '"whole": false'),
        ("/api/queries/run-of-pairs?since=x&width=y", "application/json", '"whole": true'),
        ("/api/queries/run-of-pairs/plan", "application/json", "data-live"),
    ],
)
def test_what_is_answered(serve, path, kind, inside):
    answer = asked(serve(), path)
    assert answer.status == 200
    assert answer.headers["Content-Type"].startswith(kind)
    assert inside in answer.text
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    assert "unsafe" not in answer.headers["Content-Security-Policy"]
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert answer.headers["Cache-Control"] == "no-store"
    head = asked(serve(), path, method="HEAD")
    assert (head.status, head.text, head.headers["Content-Type"]) == (200, "", answer.headers["Content-Type"])


def test_nothing_of_the_page_is_inline_or_from_elsewhere(serve):
    web = serve()
    page = asked(web, "/").text
    assert "<style" not in page
    assert "style=" not in page
    assert " on" not in page.replace(" one", "").replace(" or ", "").replace(" on a drawing", "")
    plan = json.loads(asked(web, "/api/queries/run-of-other/plan").text)
    for each in plan.values():
        assert "<style" not in each
        assert "style=" not in each
    for path in ("/", "/live.css", "/live.js"):
        text = asked(web, path).text.replace("http://www.w3.org/2000/svg", "")
        assert "http:" not in text
        assert "https:" not in text


@pytest.mark.parametrize(
    "path", ["/x", "/api", "/api/queries/nope", "/api/queries/run-of-pairs/x", "/../etc"]
)
def test_what_there_is_not(serve, path):
    assert asked(serve(), path).status == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE"])
def test_nothing_can_be_changed(serve, method):
    assert asked(serve(), "/", method=method).status == 501


@pytest.mark.parametrize("host", ["evil.example", "evil.example:4950", "localhost.evil.example", ""])
def test_a_name_that_was_led_here_is_refused(serve, host):
    web = serve()
    for path in ("/", "/metrics", "/api/queries"):
        assert asked(web, path, Host=host).status == 403
    assert asked(web, "/", Host=f"localhost:{web.port}").status == 200


@pytest.mark.parametrize("path", ["/", "/live.js", "/live.css", "/metrics", "/api/queries", "/nothing"])
def test_without_the_token_nothing_is_told(serve, path):
    web = serve(token=TOKEN)
    for wrong in ("", "?token=", f"?token={TOKEN[:-1]}", "?token=%F6"):
        answer = asked(web, path + wrong)
        assert answer.status == 401
        assert answer.headers["WWW-Authenticate"] == 'Bearer realm="wjoin"'
        assert "pairs" not in answer.text
    for headers in ({"Authorization": f"Bearer {TOKEN}x"}, {"Authorization": "Basic eDp5"}):
        assert asked(web, path, **headers).status == 401
    right = 404 if path == "/nothing" else 200
    assert asked(web, f"{path}?token={TOKEN}").status == right
    assert asked(web, path, Authorization=f"Bearer {TOKEN}").status == right


def test_with_a_token_the_parts_of_the_page_have_it(serve):
    web = serve(token=TOKEN)
    assert web.url == f"http://127.0.0.1:{web.port}/?token={TOKEN}"
    assert f'src="live.js?token={TOKEN}"' in asked(web, f"/?token={TOKEN}").text
    assert web.url in web._repr_html_()


def test_beyond_this_machine_there_is_a_token_and_any_name_will_do(serve, monkeypatch):
    monkeypatch.delenv("WJOIN_WEB_TOKEN", raising=False)
    address = Address("0.0.0.0", 0)
    web = serve(address=address, token=page_server.token_for(address, None))
    assert web.token is not None
    assert asked(web, "/", Host="node.example").status == 401
    assert asked(web, f"/?token={web.token}", Host="node.example").status == 200
    assert socket.gethostname() in web.url


def test_a_taken_port_is_an_error_and_without_a_port_the_next_one_is_taken(serve):
    first = serve(address=Address())
    second = serve(address=Address())
    assert page_server.PORT <= first.port < second.port
    with pytest.raises(WJoinError) as caught:
        serve(address=Address(port=first.port))
    assert caught.value.code == "WJ618"
    assert f"127.0.0.1:{first.port}" in caught.value.message


def test_what_cannot_be_told_is_an_answer_and_not_a_traceback(capfd):
    def fail():
        raise RuntimeError("no")

    with bound(Address(port=0), None).begin(fail, lambda: None) as web:
        assert asked(web, "/api/queries").status == 500
        assert asked(web, "/").status == 200
    assert capfd.readouterr() == ("", "")


def test_who_asks_slowly_or_nonsense_or_too_much_does_not_stop_others(serve, monkeypatch, capfd):
    monkeypatch.setattr(page_server._Handler, "seconds", 0.5)
    web = serve()
    slow = socket.create_connection(("127.0.0.1", web.port))
    slow.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n")
    for nonsense in (
        b"\x00\xff\r\n\r\n",
        b"GET " + b"x" * 70_000,
        b"GET / HTTP/9.9\r\n\r\n",
        b"A: b\r\n" * 300,
    ):
        with socket.create_connection(("127.0.0.1", web.port)) as connection:
            connection.sendall(nonsense)
    many = b"GET / HTTP/1.1\r\n" + b"".join(b"X%d: y\r\n" % each for each in range(200)) + b"\r\n"
    with socket.create_connection(("127.0.0.1", web.port)) as connection:
        connection.sendall(many)
        assert b" 431 " in connection.recv(100)
    assert asked(web, "/").status == 200
    slow.settimeout(60)
    assert slow.recv(1) == b"", "the server has closed the slow one"
    slow.close()
    assert capfd.readouterr() == ("", "")


@pytest.mark.long
def test_more_than_so_many_at_a_time_are_told_to_come_again(serve, monkeypatch):
    monkeypatch.setattr(page_server.Web, "patience", 60.0)
    web = serve()
    waiting = [socket.create_connection(("127.0.0.1", web.port)) for _ in range(page_server.MOST_REQUESTS)]
    answer = until(lambda: (each := asked(web, "/")).status == 503 and each, "the server has too many")
    assert answer.headers["Retry-After"] == "1"
    for each in waiting:
        each.close()
    until(lambda: asked(web, "/").status == 200, "the server has time again")


def test_many_ask_at_once(serve):
    web = serve()
    found = []

    def ask():
        for _ in range(5):
            found.append(asked(web, "/api/queries/run-of-pairs").status)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert found == [200] * 40


def test_closed_it_answers_no_more_and_its_port_is_free(serve):
    web = serve()
    assert web.open
    web.close()
    web.close()
    assert not web.open
    with pytest.raises(OSError):
        asked(web, "/")
    HTTPServer(("127.0.0.1", web.port), None).server_close()


def test_who_looks_sees_the_end(serve):
    web = serve()
    began = time.monotonic()
    web.close(linger=True)
    assert time.monotonic() - began < page_server.LAST_SECONDS, "nobody has looked"
    web = serve()
    asked(web, "/api/queries")
    closing = threading.Thread(target=lambda: web.close(linger=True))
    closing.start()
    assert asked(web, "/api/queries").status == 200
    closing.join()
    assert not web.open


def test_the_frame_of_a_notebook_shows_a_query(serve):
    web = serve()
    assert web.url == f"http://127.0.0.1:{web.port}/"
    assert web._repr_html_().startswith(f'<iframe src="{web.url}"')
