"""Wrong statements (parse_NAME.sql) and the exact errors that they give (parse_NAME.err).

WJOIN_REWRITE=1 writes the .err files anew; read the difference before keeping it.
"""

import os
from pathlib import Path

import pytest

from wjoin.grammar.errors import WJoinError, catalogue
from wjoin.grammar.parser import parse_script

FOLDER = Path(__file__).parent
STATEMENTS = sorted(FOLDER.glob("parse_*.sql"))


@pytest.mark.parametrize("path", STATEMENTS, ids=lambda path: path.stem)
def test_error(path: Path) -> None:
    with pytest.raises(WJoinError) as caught:
        # Half of a surrogate pair is in one of them.
        parse_script(path.read_text("utf-8", errors="surrogatepass"), source_name=path.name)
    expected = path.with_suffix(".err")
    if os.environ.get("WJOIN_REWRITE") == "1":
        expected.write_text(f"{caught.value}\n", encoding="utf-8")
    assert f"{caught.value}\n" == expected.read_text(encoding="utf-8")


def test_every_error_has_its_statement() -> None:
    assert {path.stem for path in STATEMENTS} == {path.stem for path in FOLDER.glob("parse_*.err")}


def test_every_code_of_the_text_is_covered() -> None:
    shown = {path.with_suffix(".err").read_text(encoding="utf-8")[6:11] for path in STATEMENTS}
    assert {code for code in catalogue() if code.startswith("WJ1")} <= shown
