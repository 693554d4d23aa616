"""Reading statements must not cost the start of Spark or of a data library."""

import subprocess
import sys

import pytest

HEAVY = {"pyspark", "py4j", "pandas", "pyarrow", "numpy", "duckdb", "hypothesis"}


@pytest.mark.parametrize("module", ["wjoin", "wjoin.grammar.errors", "wjoin.grammar.parser"])
def test_import_is_light(module):
    code = f"import sys, {module}; print(*{{name.split('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.PIPE, text=True)
    assert HEAVY & set(done.stdout.split()) == set()


def test_the_first_prompt_of_the_shell_is_light():
    code = (
        "import sys, wjoin.cli, wjoin.shell.run, wjoin.shell.terminal, wjoin.shell.prompt\n"
        "print(*{name.split('.')[0] for name in sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.PIPE, text=True)
    assert (HEAVY | {"sqlglot"}) & set(done.stdout.split()) == set()


def test_parsing_is_light():
    code = (
        "import sys\n"
        "from wjoin.grammar.parser import parse_script\n"
        "parse_script('SELECT * FROM a, b WINDOW = 5 SECONDS WHERE a.k = b.k')\n"
        "print(*{name.split('.')[0] for name in sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.PIPE, text=True)
    assert HEAVY & set(done.stdout.split()) == set()
