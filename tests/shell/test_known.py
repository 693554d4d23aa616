"""The names that the completion knows."""

import threading

import pytest

import wjoin
from wjoin.shell import known
from wjoin.shell.completion import Names, candidates


def test_the_names_are_those_after_the_last_statement_however_long_spark_takes(
    session: wjoin.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = known.names_of
    begun, made = threading.Event(), threading.Event()

    def slowly(session: wjoin.Session) -> Names:
        found = asked(session)
        begun.set()
        assert made.wait(60)
        return found

    names = known.KnownNames()
    typed = "SELECT * FROM just_made AS A WHERE A.ob"
    monkeypatch.setattr(known, "names_of", slowly)
    names.refresh(session)
    before = threading.Thread(target=names.names)
    before.start()
    assert begun.wait(60)
    session.sql("CREATE TEMPORARY VIEW just_made AS SELECT 1 AS obj_id")
    monkeypatch.setattr(known, "names_of", asked)
    names.refresh(session)
    made.set()
    before.join()
    assert [each.text for each in candidates(typed, len(typed), names.names())] == ["obj_id"]
    names.forget()
    assert names.names() == Names()
