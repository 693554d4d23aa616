"""The options that Spark's own formats read, so that one that nobody reads is an error."""

from collections.abc import Iterable, Mapping

from wjoin.grammar.errors import WJoinError
from wjoin.grammar.spans import Span
from wjoin.grammar.statement_kinds import SITE_FORMAT
from wjoin.grammar.suggestions import suggestion
from wjoin.grammar.tokens import scan

_FILES_READ = """
    path cleanSource discardCachedInputRatio fileNameOnly latestFirst maxBytesPerTrigger maxCachedFiles
    maxFileAge maxFilesPerTrigger sourceArchiveDir withEventTimeOrder basePath ignoreCorruptFiles
    ignoreInvalidPartitionPaths ignoreMissingFiles ignoredPathSegmentRegex modifiedAfter modifiedBefore
    pathGlobFilter recursiveFileLookup timeZone
"""
_FILES_WRITTEN = "path retention maxRecordsPerFile"
_FORMATS = {
    "parquet": "compression datetimeRebaseMode int96RebaseMode mergeSchema",
    "orc": "compression mergeSchema",
    "text": "compression encoding lineSep wholetext",
    "json": """
        allowBackslashEscapingAnyCharacter allowComments allowNonNumericNumbers
        allowNumericLeadingZeros allowSingleQuotes allowUnquotedControlChars allowUnquotedFieldNames
        charset columnNameOfCorruptRecord compression dateFormat dropFieldIfAllNull
        enableDateTimeParsingFallback encoding explodeEmbeddedArray ignoreNullFields inferTimestamp
        lineSep locale mode multiLine prefersDecimal pretty primitivesAsString samplingRatio
        singleVariantColumn sortKeys timeFormat timeZone timestampFormat timestampNTZFormat
        useUnsafeRow writeNonAsciiCharacterAsCodePoint
    """,
    "csv": """
        charToEscapeQuoteEscaping charset codec columnNameOfCorruptRecord columnPruning comment
        compression dateFormat delimiter emptyValue enableDateTimeParsingFallback encoding
        enforceSchema escape escapeQuotes extension header ignoreLeadingWhiteSpace
        ignoreTrailingWhiteSpace inferSchema inputBufferSize lineSep locale maxCharsPerColumn
        maxColumns mode multiLine nanValue negativeInf nullValue positiveInf preferDate quote quoteAll
        samplingRatio sep singleVariantColumn timeFormat timeZone timestampFormat timestampNTZFormat
        unescapedQuoteHandling
    """,
    "xml": """
        arrayElementName attributePrefix charset columnNameOfCorruptRecord compression dateFormat
        declaration encoding excludeAttribute ignoreNamespace ignoreSurroundingSpaces indent
        inferSchema locale mode multiLine nullValue preferDate prefersDecimal rootTag rowTag
        rowValidationXSDPath samplingRatio singleVariantColumn timeFormat timeZone timestampFormat
        timestampNTZFormat useLegacyXMLParser validateName valueTag wildcardColName
    """,
}
"""Formats of files, and what they read themselves."""

FILE_FORMATS = frozenset({*_FORMATS, "avro"})
"""Formats of Spark's file sink, which lists what it has written in ``_spark_metadata``."""

_SOURCES = {
    "rate": "rowsPerSecond rampUpTime numPartitions useManualClock",
    "rate-micro-batch": "rowsPerBatch numPartitions startTimestamp advanceMillisPerBatch",
    "socket": "host port includeTimestamp numPartitions",
    "kafka": """
        assign subscribe subscribePattern startingOffsets startingOffsetsByTimestamp
        startingOffsetsByTimestampStrategy startingTimestamp endingOffsets endingOffsetsByTimestamp
        endingTimestamp failOnDataLoss minPartitions maxRecordsPerPartition maxOffsetsPerTrigger
        minOffsetsPerTrigger maxTriggerDelay groupIdPrefix includeHeaders
    """,
    SITE_FORMAT: """
        site stream token tokenFile certificate patience timeout maxRowsPerTrigger startingOffsets latency
        bandwidth
    """,
}
_SINKS = {
    "console": "numRows truncate",
    "memory": "",
    "noop": "",
    "kafka": "topic includeHeaders",
}
_EVERY_SINK = "checkpointLocation outputMode trigger"
"""Options of every sink: Spark's, and those that an INSERT INTO reads itself."""

_TIMES = "dateFormat timeFormat timeZone timestampFormat timestampNTZFormat"
_TEXT_READ = f"columnNameOfCorruptRecord enableDateTimeParsingFallback locale mode {_TIMES}"
_CSV_BOTH = "delimiter emptyValue escape ignoreLeadingWhiteSpace ignoreTrailingWhiteSpace nullValue quote sep"
_RECORDS_READ = {
    "json": f"""
        allowBackslashEscapingAnyCharacter allowComments allowNonNumericNumbers
        allowNumericLeadingZeros allowSingleQuotes allowUnquotedControlChars allowUnquotedFieldNames
        primitivesAsString {_TEXT_READ}
    """,
    "csv": f"""
        charToEscapeQuoteEscaping comment maxCharsPerColumn maxColumns nanValue negativeInf positiveInf
        unescapedQuoteHandling {_CSV_BOTH} {_TEXT_READ}
    """,
    "avro": "avroSchema mode",
}
_RECORDS_WRITTEN = {
    "json": f"ignoreNullFields locale writeNonAsciiCharacterAsCodePoint {_TIMES}",
    "csv": f"charToEscapeQuoteEscaping escapeQuotes locale quoteAll {_CSV_BOTH} {_TIMES}",
    "avro": "avroSchema",
}

STREAM_OPTIONS = {
    **{name: frozenset(f"{_FILES_READ} {own}".split()) for name, own in _FORMATS.items()},
    **{name: frozenset(own.split()) for name, own in _SOURCES.items()},
}
"""By format: the options that a stream may have, as Spark spells them; case does not matter."""

SINK_OPTIONS = {
    **{name: frozenset(f"{_FILES_WRITTEN} {own} {_EVERY_SINK}".split()) for name, own in _FORMATS.items()},
    **{name: frozenset(f"{own} {_EVERY_SINK}".split()) for name, own in _SINKS.items()},
}
"""By format: the options that a sink may have."""

RECORDS_READ = {name: frozenset(own.split()) for name, own in _RECORDS_READ.items()}
"""By the format of a stream's records: the options that say how they are read."""

RECORDS_WRITTEN = {name: frozenset(own.split()) for name, own in _RECORDS_WRITTEN.items()}
"""By the format of a sink's records: the options that say how they are written."""


def record_options(
    options: Mapping[str, str], known: Mapping[str, frozenset[str]], written: str | None
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the options of a source or sink, and apart from them those of its records of a format."""
    names = {name.lower() for name in known.get(written or "", ())}
    own = {key: value for key, value in options.items() if key.lower() in names}
    return without(options, *own), own


def check_options(
    options: Iterable[str],
    known: Mapping[str, frozenset[str]],
    provider: str,
    span: Span,
    text: str,
    more: frozenset[str] = frozenset(),
) -> None:
    """Refuse an option that a format does not read, at its place in the statement. Raises WJoinError WJ603.

    Names with a dot (``kafka.*``, those of Hadoop) and the options of other formats pass. ``more`` are those
    of the records.
    """
    names = known.get(provider.lower())
    if names is None:
        return
    names |= more
    lower = {name.lower() for name in names}
    for option in options:
        if "." not in option and option.lower() not in lower:
            remedy = suggestion(option, sorted(names)) or f"{provider} has {', '.join(sorted(names))}"
            raise WJoinError(
                "WJ603",
                f"{provider} has no option {option}",
                span=option_span(option, span, text),
                help=remedy,
            )


def option_span(option: str, span: Span, text: str) -> Span:
    """Return where an option's name stands in a statement, the statement itself where it is not found."""
    for token in scan(span.of(text)):
        if token.text.strip("`'\"").lower() == option.lower():
            return Span(span.start + token.span.start, span.start + token.span.end)
    return span


def own_option(options: Mapping[str, str], name: str) -> str | None:
    """Return the value of an option, None where it is not given; case does not matter."""
    return next((value for key, value in options.items() if key.lower() == name.lower()), None)


def without(options: Mapping[str, str], *names: str) -> dict[str, str]:
    """Return options without some of them; case does not matter."""
    left_out = {name.lower() for name in names}
    return {key: value for key, value in options.items() if key.lower() not in left_out}
