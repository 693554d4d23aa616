"""The options that Spark's own formats read, so that one that nobody reads is an error."""

from collections.abc import Iterable, Mapping

from wjoin.grammar.errors import WJoinError
from wjoin.grammar.spans import Span
from wjoin.grammar.tokens import scan
from wjoin.planner.names import suggestion

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
}
_SINKS = {
    "console": "numRows truncate",
    "memory": "",
    "noop": "",
    "kafka": "topic includeHeaders",
}
_EVERY_SINK = "checkpointLocation outputMode trigger"
"""Options of every sink: Spark's, and those that an INSERT INTO reads itself."""

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


def check_options(
    options: Iterable[str], known: Mapping[str, frozenset[str]], provider: str, span: Span, text: str
) -> None:
    """Refuse an option that a format does not read, at its place in the statement. Raises WJoinError WJ603.

    Names with a dot (``kafka.*``, those of Hadoop) and the options of other formats pass.
    """
    names = known.get(provider.lower())
    if names is None:
        return
    lower = {name.lower() for name in names}
    for option in options:
        if "." not in option and option.lower() not in lower:
            remedy = suggestion(option, sorted(names)) or f"{provider} has {', '.join(sorted(names))}"
            raise WJoinError(
                "WJ603",
                f"{provider} has no option {option}",
                span=option_span(option, span, text),
                text=text,
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
