"""The costs of a machine: saved, loaded, refused."""

from pathlib import Path

import pytest

from wjoin.grammar.errors import WJoinError
from wjoin.planner.cost.constants import Constants, constants_file, load_constants, save_constants


def test_what_is_saved_is_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert load_constants() == Constants()
    mine = Constants(row=1e-3)
    assert save_constants(mine) == constants_file() == tmp_path / "wjoin" / "costs.json"
    assert load_constants() == mine


@pytest.mark.parametrize("text", ["", "[]", '{"rows": 1}', '{"row": -1}', '{"row": "x"}'])
def test_a_file_that_holds_something_else_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "costs.json"
    path.write_text(text)
    with pytest.raises(WJoinError) as refused:
        load_constants(path)
    assert refused.value.code == "WJ610"
    assert str(path) in refused.value.message


def test_state_in_files_and_tables_have_costs_of_their_own() -> None:
    mine = Constants(files_stage=1.0, table_stage=2.0, native_table_batch=3.0)
    assert (mine.in_files().stage, mine.in_files().batch) == (1.0, mine.files_batch)
    assert mine.in_files().native_batch == mine.native_batch
    assert (mine.over_tables().stage, mine.over_tables().native_batch) == (2.0, 3.0)
    assert mine.in_files().over_tables() == mine.over_tables().in_files().over_tables()


def test_all_costs_are_told_by_their_names() -> None:
    """`wjoin calibrate` prints them and saves them: those of kernels as well."""
    mine = Constants().measured({"worker": 0.5, "probe_hw": 0.25})
    assert mine.costs["worker"] == 0.5
    assert mine.costs["probe_hw"] == 0.25
    assert all(isinstance(each, float) for each in mine.costs.values())
