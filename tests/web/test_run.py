"""``wjoin run --web``: the page of a script that runs, and of one that fails before the process ends."""

import json
import os
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.session.test_computed_columns import write_json
from wjoin.cli import main
from wjoin.commands.arguments import parse_arguments
from wjoin.testing.waiting import PATIENCE_SECONDS, until

pytestmark = pytest.mark.thorough

JOIN = "FROM a A, b B WINDOW (A, B) = '1 second' WHERE A.id = B.id"


@pytest.mark.parametrize(
    ("arguments", "web", "file"),
    [
        (["run", "x.sql"], None, "x.sql"),
        (["run", "--web", "x.sql"], "", "x.sql"),
        (["run", "x.sql", "--web"], "", "x.sql"),
        (["run", "x.sql", "--web", "0"], "0", "x.sql"),
        (["run", "--web", "0.0.0.0:80", "x.sql"], "0.0.0.0:80", "x.sql"),
        (["run", "--web", "--once", "x.sql"], "", "x.sql"),
    ],
)
@pytest.mark.long
def test_the_script_may_follow_the_option(arguments: list[str], web: str | None, file: str) -> None:
    options = parse_arguments(arguments)
    assert (options.web, options.file) == (web, file)


def test_what_is_no_address_is_refused_before_spark_starts(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "x.sql").write_text("SELECT 1")
    assert main(["run", str(tmp_path / "x.sql"), "--web", "nonsense"]) == 2
    assert "error[WJ618]: nonsense is not a port or HOST:PORT" in capsys.readouterr().err


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Callable[..., tuple[subprocess.Popen[bytes], str, Path]]]:
    """Return a function that runs a script over two streams, with the address of its page and its errors."""
    started = []
    text = ""
    for name, late in (("a", 0), ("b", 250)):
        rows = [{"id": number, "ms": 1_700_000_000_000 + 1000 * number + late} for number in range(10)]
        folder = write_json(tmp_path / name, rows)
        text += (
            f"CREATE STREAM {name} (id BIGINT, ms BIGINT, ts AS timestamp_millis(ms)) USING json "
            f"OPTIONS (path '{folder}') WATERMARK ts DELAY OF '2 seconds';\n"
        )
    text += "CREATE SINK nothing USING noop;\n"

    def begin(statements: str, *more: str) -> tuple[subprocess.Popen[bytes], str, Path]:
        (tmp_path / "script.sql").write_text(text + statements)
        command = [sys.executable, "-m", "wjoin.cli", "run", str(tmp_path / "script.sql"), *more]
        command += ["--checkpoint", str(tmp_path / "checkpoints")]
        errors = tmp_path / "errors"
        with errors.open("w") as stream:
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=stream, env={**os.environ})
        started.append(process)
        found = until(
            lambda: re.search(r"Live page: (\S+)", errors.read_text()),
            "the address",
            process=process,
            said=errors.read_text,
        )
        return process, found[1], errors

    yield begin
    for each in started:
        each.kill()
        each.wait()


def get(url: str, path: str) -> Any:
    base, _, token = url.partition("?token=")
    request = urllib.request.Request(
        base + path, headers={"Authorization": f"Bearer {token}"} if token else {}
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


def queries(url: str) -> dict[str, dict[str, Any]]:
    return {
        each["name"]: get(url, f"api/queries/{each['run']}") for each in get(url, "api/queries")["queries"]
    }


@pytest.mark.spark
def test_a_script_with_a_select_is_shown_with_its_plan_for_those_who_have_the_token(run: Any) -> None:
    process, url, errors = run(
        f"INSERT INTO nothing SELECT A.id {JOIN}; SELECT A.id {JOIN}", "--web", "0.0.0.0:0"
    )
    url = re.sub(r"//[^:]+:", "//127.0.0.1:", url)
    with pytest.raises(urllib.error.HTTPError) as refused:
        get(url.partition("?")[0], "api/queries")
    assert refused.value.code == 401
    refused.value.close()
    until(
        lambda: len(found := queries(url)) == 2 and all(each["reported"] for each in found.values()),
        "two queries have reported",
        process=process,
        said=errors.read_text,
    )
    found = queries(url)
    assert found.keys() == {"nothing", "SELECT"}
    for each in found.values():
        assert each["numbers"]["rows"] == {"A": 10, "B": 10}
        assert each["numbers"]["results"] == 10
        assert len(each["joins"]) == 1
    process.terminate()
    assert process.wait(timeout=PATIENCE_SECONDS) == 0
    printed = errors.read_text()
    assert "Traceback" not in printed
    assert printed.count(url.partition("token=")[2]) == 1, "the token is printed once"


@pytest.mark.spark
def test_a_script_that_fails_shows_its_error_to_whoever_looks(run: Any) -> None:
    process, url, errors = run(
        f"INSERT INTO nothing SELECT raise_error('not today') AS id {JOIN}", "--web", "0"
    )
    failed = until(
        lambda: (found := queries(url)) and found["nothing"]["state"] == "failed" and found["nothing"],
        "the query has failed",
        process=process,
        said=errors.read_text,
    )
    assert "not today" in failed["error"]
    assert process.wait(timeout=PATIENCE_SECONDS) == 1
    assert "not today" in errors.read_text()
    with pytest.raises(urllib.error.URLError):
        get(url, "api/queries")
