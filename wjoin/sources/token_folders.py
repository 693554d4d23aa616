"""In which folders are the files of tokens that a statement may name."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TOKEN_FOLDERS = "spark.wjoin.tokenFolders"
"""The setting of a Spark that names, with commas, the folders of the files of tokens in statements.

Without it a session of one's own may name any; who sends SQL to the Spark of somebody else, none.
"""


def token_folders(spark: "SparkSession") -> tuple[Path, ...] | None:
    """Return in which folders are the files of tokens that statements may name, None for any.

    SQL cannot change it: it is the application's, and no session has one of its own.
    """
    context: Any = getattr(spark, "_sc", None)
    named = None if context is None else context.getConf().get(TOKEN_FOLDERS)
    return None if named is None else tuple(Path(each.strip()) for each in named.split(",") if each.strip())
