"""How Spark leaves secrets out of the statements and plans that it shows and logs."""

_NAME = r"(?:secret|password|token(?!file)|access[._]?key)[\w.\-]{0,30}['\"`]?\s{0,5}=?\s{0,5}r?"
_LITERALS = "|".join(
    rf"{quote}[^{quote}\\]{{0,4000}}+(?:\\.[^{quote}\\]{{0,4000}}+){{0,99}}+{quote}" for quote in "'\""
)
# What follows tells a literal from what is between two.
_REGEX = rf"""(?is)(?=['"\\])(?<={_NAME})(?:{_LITERALS}|\\["'].{{0,4000}}?\\["'])(?=[\s,;)]|$)"""
REDACTING = {"spark.sql.redaction.string.regex": _REGEX}
"""The setting with which Spark shows and logs statements and plans without secrets.

It is ``wjoin.grammar.shown`` as far as Java's expressions can be: the literals behind names of secrets.
"""
