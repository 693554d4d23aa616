"""What of a query is damaged where Spark cannot read a file, and whether its rows can be had again."""

import re

_FILE = r"(?:file:/*)?(?P<file>/[^\s,;'\"]*[^\s,;:.'\"])"
_NAMED = tuple(
    re.compile(pattern)
    for pattern in (
        rf"Failed to read log file {_FILE}",
        rf"Checksum error: {_FILE} at ",
        rf"Checksum verification failed, the file may be corrupted\. File: {_FILE}",
        rf"Unable to find batch {_FILE}",
        rf"{_FILE} doesn't exist when compacting batch",
        rf"\[FAILED_READ_FILE[^\]]*\] Encountered error while reading file {_FILE}",
        rf"Error reading [\w ]*file (?:of )?{_FILE}",
        rf"Failed to read concrete offset log {_FILE}",
        rf"{_FILE} is not a Parquet file",
        rf"File {_FILE} does not exist",
    )
)
_OF_STATE = (
    "[CANNOT_LOAD_STATE_STORE",
    "[STREAMING_STATEFUL_OPERATOR_MISSING_STATE_DIRECTORY]",
    "[STATE_STORE_ROW_CHECKSUM_VERIFICATION_FAILED]",
)
_OF_CHECKPOINT = (
    "[STREAMING_CHECKPOINT_MISSING_METADATA_FILE]",
    "[MALFORMED_LOG_FILE]",
    "[BATCH_METADATA_NOT_FOUND]",
)
_OTHER_TYPE = "PARQUET_COLUMN_DATA_TYPE_MISMATCH"
_GONE = ("FAILED_READ_FILE.FILE_NOT_EXIST", "does not exist", "FileNotFoundException")
_ANEW = (
    "without a copy, start with a new checkpoint folder and a new results folder: the query then reads the "
    "rows that its sources still hold"
)


def damage_remedy(said: str, checkpoint: str) -> str | None:
    """Return what to do about a failure that comes of a damaged file; None where it comes of none.

    ``said`` is what Spark says of the query's failure, ``checkpoint`` its folder.
    """
    found = next((named for pattern in _NAMED if (named := pattern.search(said))), None)
    file = "" if found is None else found["file"]
    folder = re.sub(r"^file:/*", "/", checkpoint).rstrip("/") + "/"
    if "/_spark_metadata/" in file:
        return (
            f"the log of the sink's folder is damaged: restore {file} from a copy; {_ANEW}. The result "
            "files are intact, but only the log distinguishes them from leftovers of a crash"
        )
    if file.startswith(f"{folder}state/") or any(words in said for words in _OF_STATE):
        what = file if file.startswith(folder) else f"{folder}state"
        return f"the state of the query is damaged: restore {what} from a copy of the checkpoint; {_ANEW}"
    if file.startswith(folder) or any(words in said for words in _OF_CHECKPOINT):
        what = file or f"{folder}metadata"
        return f"the checkpoint is damaged: restore {what} from a copy of the checkpoint; {_ANEW}"
    if file and _OTHER_TYPE not in said:
        option = "ignoreMissingFiles" if any(words in said for words in _GONE) else "ignoreCorruptFiles"
        return (
            f"a source is damaged, the query is not: restore or repair {file}, and start the query again: "
            f"it resumes from its checkpoint, {checkpoint}, and no row is lost; with the stream's option "
            f"{option} 'true' it continues without the rows of such files"
        )
    return None
