"""wjoin.toml beside a script: settings and parameters, profiles, and what the command line says besides."""

import datetime
from pathlib import Path

import pytest

from wjoin.commands.arguments import parse_arguments, read_script
from wjoin.commands.spark_start import spark_settings
from wjoin.grammar.errors import WJoinError

FILE = """
[settings]
wjoin.checkpoint = "out/checkpoints"
"spark.sql.shuffle.partitions" = 4
spark.sql.ansi.enabled = true

[parameters]
data = "data"
least = 3
since = 2024-05-01

[profiles.prod.settings]
wjoin.checkpoint = "s3a://bucket/checkpoints"

[profiles.prod.parameters]
data = "s3a://bucket/data"

[profiles.test]
"""


@pytest.fixture
def script(tmp_path: Path) -> str:
    (tmp_path / "wjoin.toml").write_text(FILE)
    (tmp_path / "script.sql").write_text("SELECT 1")
    return str(tmp_path / "script.sql")


def given(*arguments: str) -> tuple[dict[str, str], dict[str, object]]:
    """Return the settings and the parameters of a command line."""
    options = parse_arguments([*arguments])
    return spark_settings(options), read_script(options)[1]


def test_the_file_beside_the_script_is_read(script: str, tmp_path: Path) -> None:
    settings, parameters = given("run", script)
    assert settings["wjoin.checkpoint"] == str(tmp_path / "out" / "checkpoints")
    assert settings["spark.sql.shuffle.partitions"] == "4"
    assert settings["spark.sql.ansi.enabled"] == "true"
    assert parameters == {"data": "data", "least": 3, "since": datetime.date(2024, 5, 1)}


def test_a_profile_goes_before_the_file_and_the_command_line_before_both(
    script: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, parameters = given("check", script, "--profile", "prod")
    assert settings["wjoin.checkpoint"] == "s3a://bucket/checkpoints"
    assert parameters["data"] == "s3a://bucket/data" and parameters["least"] == 3
    monkeypatch.setenv("WJOIN_PROFILE", "prod")
    settings, parameters = given(
        "run", script, "--set", "spark.sql.shuffle.partitions=8", "--param", "least=5"
    )
    assert settings["wjoin.checkpoint"] == "s3a://bucket/checkpoints"
    assert settings["spark.sql.shuffle.partitions"] == "8"
    assert (parameters["data"], parameters["least"]) == ("s3a://bucket/data", "5")
    settings, parameters = given("run", script, "--profile", "test")
    assert parameters["data"] == "data"


def test_statements_of_the_command_line_take_the_file_of_this_folder(
    script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert given("run", "-e", "SELECT 1")[1]["data"] == "data"
    monkeypatch.chdir(tmp_path.parent)
    assert given("run", "-e", "SELECT 1")[1] == {}
    assert given("run", script)[1]["data"] == "data"


@pytest.mark.parametrize(
    ("text", "profile", "code", "message"),
    [
        ("[settings", None, "WJ619", "cannot be read: "),
        ("[setting]\na = 1", None, "WJ619", "has an unknown entry setting"),
        ("[profiles.a.sinks]\nx = 1", "a", "WJ619", "has an unknown entry profiles.a.sinks"),
        ("parameters = 3", None, "WJ619", "parameters of .* is not a table"),
        ("[parameters]\nx = [1]", None, "WJ619", "parameters.x of .* is not a single value"),
        ("[settings]\nspark.x.y = []", None, "WJ619", "settings.spark.x.y of .* is not a single value"),
        ("[profiles.prod]", "pord", "WJ620", "has no profile pord"),
    ],
)
def test_what_cannot_be_meant_is_told(
    script: str, tmp_path: Path, text: str, profile: str | None, code: str, message: str
) -> None:
    (tmp_path / "wjoin.toml").write_text(text)
    with pytest.raises(WJoinError, match=message) as told:
        given("run", script, *(["--profile", profile] if profile else []))
    assert told.value.code == code


def test_a_profile_without_a_file_is_told(script: str, tmp_path: Path) -> None:
    (tmp_path / "wjoin.toml").unlink()
    assert given("run", script)[1] == {}
    with pytest.raises(WJoinError, match="there is no profile prod: no") as told:
        given("run", script, "--profile", "prod")
    assert told.value.code == "WJ620"
