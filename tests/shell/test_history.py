"""The history: kept, read again, and never in the way."""

import pytest

from wjoin.shell.history import StatementHistory, history_path


def typed(path) -> list[str]:
    """Return what the next shell knows, the newest first."""
    return list(StatementHistory(path).load_history_strings())


def test_statements_of_several_lines_are_there_for_the_next_shell(tmp_path):
    path = tmp_path / "deep" / "history"
    first = StatementHistory(path)
    for text in ("SELECT 1;", "SELECT\n  '日本'\n;", " SELECT 'secret';", "  \n"):
        first.append_string(text)
    assert typed(path) == ["SELECT\n  '日本'\n;", "SELECT 1;"]
    assert path.stat().st_mode & 0o077 == 0, "others do not read what has been typed"


def test_a_broken_file_is_read_as_far_as_it_can_be(tmp_path):
    path = tmp_path / "history"
    path.write_bytes(b"\xff\xfe\0garbage\n\n# 2026\n+SELECT 1;\n+\xff\n# 2026\n+SELECT 2;\n")
    assert typed(path) == ["SELECT 2;", "SELECT 1;\n\ufffd"]


@pytest.mark.parametrize("made", ["a folder", "below a file"])
def test_a_file_that_cannot_be_written_is_told_and_nothing_else(tmp_path, made):
    (tmp_path / "file").write_text("")
    path = tmp_path if made == "a folder" else tmp_path / "file" / "history"
    found = StatementHistory(path)
    assert found.trouble is not None
    assert found.trouble.startswith(f"the history cannot be saved in {path}: ")
    found.append_string("SELECT 1;")
    assert list(found.load_history_strings()) == []


def test_where_it_is(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.delenv("WJOIN_HISTORY", raising=False)
    assert history_path() == tmp_path / "wjoin" / "history"
    monkeypatch.setenv("WJOIN_HISTORY", "/x/y")
    assert str(history_path()) == "/x/y"
