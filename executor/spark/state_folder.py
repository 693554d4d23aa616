"""The folder of a join's state, as tasks learn it."""

from pathlib import Path

from wjoin.executor.spark.task import local_property
from wjoin.grammar.errors import WJoinError

HANDED, REFUSED = "wjoin.state.folder", "wjoin.state.refused"
"""The local properties of a query's tasks that tell where below its checkpoint the state is, for those
operators that were compiled before the checkpoint was known; or the code and the message of an error."""


def handed(folder: Path) -> Path:
    """Return a folder of state; a relative one lies below what is told.

    Raises the WJoinError that is told, and WJ720 where nothing is.
    """
    if folder.is_absolute():
        return folder
    refused = local_property(REFUSED)
    if refused is not None:
        code, _, message = refused.partition(" ")
        raise WJoinError(code, message)
    told = local_property(HANDED)
    if told is None:
        raise WJoinError(
            "WJ720", "wjoin.state is files, but the query has no checkpoint folder that wjoin knows"
        )
    return Path(told) / folder
