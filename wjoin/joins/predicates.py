"""Predicates in a session: as functions of Spark's too, from files, and as SHOW PREDICATES lists them."""

import importlib.util
import re
import sys
from pathlib import Path
from typing import Any, cast

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import pandas_udf

from wjoin.executor.pair_calls import scores
from wjoin.grammar.errors import WJoinError
from wjoin.joins.trials import tried_in
from wjoin.planner.conditions.predicate_calls import cost_of, share_of
from wjoin.spark.engine import Engine
from wjoin.spark.session_things import held
from wjoin.udfs.built_in import known_predicates
from wjoin.udfs.predicate import Predicate

_CALL = re.compile(r"\b(\w+)\s*\(")


class _Registered(dict[str, Predicate]):
    """The predicates that a Spark session knows as functions, by their names in lower case."""


def called_names(text: str) -> set[str]:
    """Return the names, in lower case, of the predicates that a text may call."""
    return {name.lower() for name in _CALL.findall(text)} & known_predicates().keys()


def called_predicates(spark: SparkSession, text: str) -> dict[str, Predicate]:
    """Return the predicates that a text may call, by their names in lower case.

    Spark knows them afterwards, too: outside of joins it calls them, and where a join cannot decide a
    condition. A function of Spark's, or one that was registered with it, goes before one of wjoin's own of
    the same name. Raises WJoinError WJ606 where a predicate of the user's has such a name.
    """
    known, registered = known_predicates(), held(spark).get(_Registered, _Registered)
    found = {}
    for name in sorted(called_names(text)):
        predicate = known[name]
        if registered.get(name) is not predicate:
            if name not in registered and _is_sparks(spark, name):
                if predicate.built_in:
                    continue
                message = f"a Spark function is already named {predicate.name}"
                remedy = "register it under another name: @wjoin.predicate(name=…)"
                raise WJoinError("WJ606", message, help=remedy)
            spark.udf.register(name, _function(predicate))
            registered[name] = predicate
        found[name] = predicate
    return found


def _is_sparks(spark: SparkSession, name: str) -> bool:
    try:
        return bool(spark.catalog.functionExists(name))
    except PySparkException:
        return False


def _function(predicate: Predicate) -> Any:
    """Return a predicate as a function of Spark's."""

    def call(*columns: pd.Series) -> pd.Series:
        arguments = [pa.Array.from_pandas(each) for each in columns]
        values, null = scores(predicate, arguments)
        found = pa.array(values, mask=null)
        if predicate.returns == "boolean":
            found = pc.not_equal(found, 0.0)
        return cast("pd.Series[Any]", found.to_pandas(types_mapper={pa.bool_(): pd.BooleanDtype()}.get))

    return pandas_udf(call, predicate.returns)  # type: ignore[call-overload]  # knows no *columns


def load(path: str) -> None:
    """Run a Python file that registers predicates; workers need not have it.

    Raises WJoinError WJ608 where it cannot be read, or fails.
    """
    file = Path(path)
    spec = importlib.util.spec_from_file_location(f"wjoin_udf_{file.stem}", file)
    if spec is None or spec.loader is None or not file.is_file():
        raise WJoinError("WJ608", f"{file.resolve()} is not a readable Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]  # has no types
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise WJoinError("WJ608", f"{file.resolve()} failed: {type(error).__name__}: {error}") from error


def show_predicates(engine: Engine) -> DataFrame:
    """Return a row for each predicate: what it takes and returns, and what is known or taken of its cost.

    What was measured is of the latest trial in this session.
    """
    rows, known = [], tried_in(engine.spark)
    for _, each in sorted(known_predicates().items()):
        trial = known.latest(each)
        cost, share = cost_of(each, trial), share_of(each, trial)
        figures = (float(cost.value), cost.origin.value, float(share.value), share.origin.value)
        rows.append((each.name, each.arguments, each.returns.upper(), *figures, each.summary or None))
    schema = (
        "name STRING, arguments STRING, returns STRING, cost_us DOUBLE, cost_source STRING, "
        "selectivity DOUBLE, selectivity_source STRING, meaning STRING"
    )
    return engine.rows(rows, schema)
