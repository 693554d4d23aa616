"""Commands whose packages come with an extra say which one to install."""

import importlib.util
import sys

import pytest

from wjoin import cli
from wjoin.commands.extras import lacks
from wjoin.executor.spark.analyze import analyze
from wjoin.grammar.errors import WJoinError


@pytest.fixture
def hidden(monkeypatch):
    """Names of packages that are then as if they were not installed."""
    names = set()
    found = importlib.util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name in names else found(name))
    return names


def test_the_shell_names_what_it_needs(hidden, capsys):
    assert not lacks("shell")
    hidden.add("prompt_toolkit")
    assert lacks("shell")
    assert capsys.readouterr().err == "wjoin: the shell needs prompt_toolkit: pip install 'wjoin[shell]'\n"


def test_a_site_names_what_it_needs(hidden, capsys, tmp_path):
    hidden.add("hpack")
    assert cli.main(["site", "serve", "--config", str(tmp_path / "site.toml")]) == 2
    assert "WJ905" in (said := capsys.readouterr().err)
    assert "pip install 'wjoin[sites]'" in said


def test_a_python_without_the_sketches_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasketches", None)
    with pytest.raises(WJoinError, match="ANALYZE STREAM needs the package datasketches") as refused:
        analyze(None, None, [], [], None)
    assert refused.value.code == "WJ606"
