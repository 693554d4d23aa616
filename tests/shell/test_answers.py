"""What statements answer at a terminal."""

from pathlib import Path

import pytest

import wjoin
from tests.session.test_computed_columns import write_json
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.parser import parse_statement
from wjoin.queries.running import Running
from wjoin.shell.printed_answers import answer
from wjoin.shell.shell import Choices


@pytest.mark.long
def test_a_query_that_fails_while_it_is_waited_for_has_its_place(
    session: wjoin.Session, tmp_path: Path
) -> None:
    folder = write_json(tmp_path / "data", [{"k": 1}])
    session.sql(f"CREATE STREAM one (k BIGINT) USING json OPTIONS (path '{folder}')")
    session.sql("CREATE SINK nothing USING noop")
    text = "INSERT INTO nothing SELECT raise_error('broken') AS x FROM one"
    asked = session.context.asked(text, {})
    started: list[Running] = []
    choices = Choices(10, once=True, checkpoint=f"{tmp_path}/checkpoints")
    with pytest.raises(WJoinError, match="broken") as raised:
        answer(asked, parse_statement(text), choices, "group", started.append, lambda *shown: None)
    assert (raised.value.code, len(started)) == ("WJ704", 1)
    assert raised.value.span is not None
    assert raised.value.span.of(text) == "nothing"
