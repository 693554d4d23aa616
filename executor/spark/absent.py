"""What the columns that are read of a stream are where it has no row: expressions over NULLs."""

from dataclasses import replace

import pyarrow as pa
from pyspark.sql import functions as F

from wjoin.executor.blocks import stable, stable_type
from wjoin.executor.spark.scans import Reading, scanned
from wjoin.executor.spark.site_source import arrow_schema
from wjoin.parts.kernels.runs import integers
from wjoin.planner.plan.block_columns import code_name, stored_column


def absent_values(reading: Reading) -> dict[str, pa.Scalar]:
    """Return what is kept of a stream in tuples that have no row of it, by the names of the block's columns.

    Spark is asked only where something other than a plain column is read, which may be more than NULL.
    """
    plan, number, scan = reading.plan, reading.number, reading.scan
    columns = [stored_column(plan, number, place) for place in range(len(scan.columns))]
    names = [each.name for each in columns if not each.restored]
    codes = [code_name(number, place) for place in range(len(scan.codes))]
    expressions = [text for code in scan.codes for text in code.expressions]
    expressions += [each.expression for each in scan.columns]
    plain = {f"{scan.alias}.{name}".lower() for name in reading.source.columns}
    if all(each.replace("`", "").lower() in plain for each in expressions):
        known = arrow_schema(scanned(reading).schema)
        return {name: pa.scalar(None, stable_type(known.field(name).type)) for name in names}
    # Filters are for rows that are there.
    bare = replace(scan, filters=(), meets=(), late=(), late_into="")
    streams = tuple(bare if place == number else each for place, each in enumerate(plan.streams))
    nulls = [F.lit(None).cast(each.dataType).alias(each.name) for each in reading.source.schema]
    nothing = reading.source.sparkSession.sql("SELECT 1").select(*nulls)
    table = scanned(Reading(replace(plan, streams=streams), number, nothing)).toArrow()
    found = {name: stable(table.column(name).combine_chunks())[0] for name in names}
    return found | {name: integers(table.column(name).combine_chunks())[0] for name in codes}
