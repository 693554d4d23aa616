"""What stands in the rewritten text of a statement for the joined rows of a W-join, and is read as these."""

import re
from collections.abc import Callable, Mapping

from pyspark.sql import DataFrame

PLACEHOLDER = re.compile(r"\b__wjoin_input_(\d+)\b")
"""What stands for the joined rows of another W-join, by its number."""


def over_joined(
    run: Callable[..., DataFrame],
    text: str,
    params: Mapping[str, object],
    joined: Callable[[int], DataFrame] | None,
) -> DataFrame:
    """Run a piece of Spark SQL over joined rows, which ``joined`` has; None: there are none."""
    numbers = {int(number) for number in PLACEHOLDER.findall(text)}
    if joined is None or not numbers:
        return run_over(run, text, params, {})
    text = text.replace("{", "{{").replace("}", "}}")
    text = PLACEHOLDER.sub(lambda found: "{" + found.group() + "}", text)
    return run_over(run, text, params, {placeholder(number): joined(number) for number in numbers})


def run_over(
    run: Callable[..., DataFrame],
    text: str,
    params: Mapping[str, object],
    frames: Mapping[str, DataFrame],
) -> DataFrame:
    """Run a piece of Spark SQL with a statement's parameters and DataFrames for its ``{names}``."""
    arguments: dict[str, object] = {"args": params} if params else {}
    return run(text, **arguments, **frames)


def placeholder(number: int) -> str:
    """Return what stands for the joined rows of a plan in the rewritten text."""
    return f"__wjoin_input_{number}"


FIRST = placeholder(0)
"""What stands for the joined rows of the first plan of a statement."""
