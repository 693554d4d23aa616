"""The names that the completion knows are those after the last statement, however long Spark takes."""

import time

import pytest

import wjoin
from wjoin.shell import known
from wjoin.shell.completion import Names, candidates


def test_a_menu_waits_for_the_names_that_are_asked_for(
    session: wjoin.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = known.names_of

    def slowly(*arguments: object) -> Names:
        time.sleep(0.5)
        return asked(*arguments)

    monkeypatch.setattr(known, "names_of", slowly)
    names = known.Known()
    typed = "SELECT * FROM just_made AS A WHERE A.ob"
    names.refresh(session)
    assert candidates(typed, len(typed), names.names()) == []
    session.sql("CREATE TEMPORARY VIEW just_made AS SELECT 1 AS obj_id")
    names.refresh(session)
    assert [each.text for each in candidates(typed, len(typed), names.names())] == ["obj_id"]
