"""Text to statements: divides a text into statements and reads those that are wjoin's."""

from collections.abc import Iterator

from wjoin.grammar import statement_kinds, syntax
from wjoin.grammar.clauses import SyntaxSlip, read_declaration
from wjoin.grammar.errors import WJoinError
from wjoin.grammar.nesting import QUERY_WORDS, Code, pair, refuse_unclosed
from wjoin.grammar.select_blocks import find_blocks
from wjoin.grammar.slips import explain
from wjoin.grammar.spans import Span
from wjoin.grammar.tokens import HALF_PAIR, Kind, Token, identifier, is_name, scan, string_value

_BETWEEN_CREATE = frozenset("OR REPLACE TEMP TEMPORARY GLOBAL LOCAL IF NOT EXISTS".split())
_EXPLAIN_MODES = frozenset({"FORMATTED", "COST", "ANALYZE", "MATCH"})
_OTHER_MODES = frozenset({"EXTENDED", "CODEGEN", "LOGICAL"})


def parse_script(
    text: str, source_name: str = "<sql>", streams: frozenset[str] = frozenset()
) -> tuple[statement_kinds.Statement, ...]:
    """Return the statements of ``text``, divided at semicolons.

    A statement with nothing of wjoin's in it is a SparkStatement, whatever it says. A join of ``streams``,
    by their names in lower case, is a block without a window clause, too, for its conditions may be windows.
    Raises WJoinError, placed in the text under ``source_name``, for a statement of wjoin's that cannot be
    read, and WJ115 for a text that cannot be sent to Spark.
    """
    try:
        if half := HALF_PAIR.search(text):
            message = f"the text has half of a surrogate pair, U+{ord(half[0]):04X}"
            raise WJoinError("WJ115", message, span=Span(*half.span()))
        return tuple(_statement(pair(text, tokens, streams)) for tokens in _divide(scan(text)))
    except WJoinError as error:
        raise error.within(text, source_name) from None


def parse_statement(text: str, streams: frozenset[str] = frozenset()) -> statement_kinds.Statement:
    """Return the one statement of ``text``; raises as parse_script does, and WJ606 for none or several."""
    statements = parse_script(text, streams=streams)
    if len(statements) == 1:
        return statements[0]
    if not statements:
        raise WJoinError("WJ606", "there is no statement", help="write one")
    raise WJoinError(
        "WJ606",
        "expected one statement, found several",
        span=statements[1].span,
        text=text,
        help="run them one by one, or as a script",
    )


def unended(text: str) -> int:
    """Return where the statement begins that no semicolon ends, the length of the text where all are ended.

    What is not closed ends nowhere. Never raises.

    >>> unended("SELECT 1; SELECT 2"), unended("SELECT 1; -- done"), unended("SELECT ';")
    (10, 17, 0)
    """
    tokens = scan(text)
    last: list[Token] = []
    for piece in _divide(tokens):
        last = piece
    return last[0].start if last and last[-1] is tokens[-1] else len(text)


def _divide(tokens: list[Token]) -> Iterator[list[Token]]:
    """Yield the tokens of each statement; a Spark SQL script from BEGIN to END is one."""
    first, depth, scripted = 0, 0, False
    for place, token in enumerate(tokens):
        if place == first:
            depth, scripted = 0, begins_script(tokens, place) or _set_body(tokens, place) > 0
        field = place > 0 and tokens[place - 1].text == "."
        if scripted and not field and token.word in ("BEGIN", "CASE", "END"):
            depth += _script_step(tokens, place)
        if token.text == ";" and depth <= 0:
            if place > first:
                yield tokens[first:place]
            first = place + 1
    if first < len(tokens):
        yield tokens[first:]


_ON_FAILURE = ["ON", "FAILURE", "STOP", "ALL"], ["ON", "FAILURE", "KEEP", "OTHERS"]
"""What comes of a sink of a statement set that fails: the query, or only its own rows, wait."""


def _set_body(tokens: list[Token], place: int) -> int:
    """Return the place behind the BEGIN of a statement set at a place, be it explained; 0 for no such."""
    if tokens[place].word == "EXPLAIN":
        place += 1 + (tokens[min(place + 1, len(tokens) - 1)].word in _EXPLAIN_MODES | _OTHER_MODES)
    elif tokens[place].word == "EXECUTE":
        place += 1
    words = [token.word for token in tokens[place : place + 8]]
    if words[:2] != ["STATEMENT", "SET"]:
        return 0
    # A name and what comes of a failure may stand in between.
    for at in (2, 3):
        if words[at : at + 1] == ["BEGIN"]:
            return place + at + 1
        if words[at : at + 4] in _ON_FAILURE and words[at + 4 : at + 5] == ["BEGIN"]:
            return place + at + 5
    return 0


def begins_set(text: str) -> statement_kinds.StatementSet | statement_kinds.ExplainSet | None:
    """Return a statement set of which only END is to come, None for all else.

    Raises WJoinError, placed in the text, where what there is of the set cannot be read.

    >>> begins_set("EXECUTE STATEMENT SET BEGIN INSERT INTO a SELECT 1; END") is None
    True
    """
    tokens = scan(text)
    if not tokens or not _set_body(tokens, 0):
        return None
    first, *more = parse_script(f"{text}\n;END")
    return (
        first
        if isinstance(first, statement_kinds.StatementSet | statement_kinds.ExplainSet) and not more
        else None
    )


def begins_script(tokens: list[Token], place: int) -> bool:
    """Return whether a script of Spark's begins at a place: BEGIN … END, with a label or without."""
    words = [token.word for token in tokens[place : place + 3]]
    after = tokens[place + 1].text if place + 1 < len(tokens) else ""
    return (words[:1] == ["BEGIN"] and after != ";") or (words[2:] == ["BEGIN"] and after == ":")


def _script_step(tokens: list[Token], place: int) -> int:
    """Return how a word changes the depth of a script: END IF and its kin close nothing counted."""
    following = tokens[place + 1].word if place + 1 < len(tokens) else ""
    if tokens[place].word == "END":
        return 0 if following in ("IF", "WHILE", "LOOP", "REPEAT", "FOR") else -1
    return 0 if tokens[place].word == "CASE" and tokens[place - 1].word == "END" else 1


# Statements ------------------------------------------------------------------


def _statement(code: Code) -> statement_kinds.Statement:
    words = [token.word for token in code.tokens[:12]]
    if _is_declaration(code, words):
        return _declaration(code)
    _refuse_flinks_table(code, words)
    if words[0] == "EXPLAIN":
        return _explain(code)
    if words[:2] == ["EXECUTE", "IMMEDIATE"] and len(code.tokens) > 2:
        return _execute_immediate(code)
    if words[:3] == ["EXECUTE", "STATEMENT", "SET"]:
        return _statement_set(code, 0)
    if words[:3] == ["ALTER", "STATEMENT", "SET"]:
        return _alter_set(code)
    if reads := _state_reads(code):
        return _state_select(code, reads)
    inserts = _inserts(code)
    if _is_one_into(code, inserts):
        return _insert(code, inserts[0])
    blocks = find_blocks(code)
    if not blocks:
        return statement_kinds.SparkStatement(span=_whole(code))
    if begins_script(code.tokens, 0):
        raise WJoinError(
            "WJ105",
            "a window clause is inside a BEGIN … END script",
            span=blocks[0].window_span,
            help="create a view from the query before the script, and use it there",
        )
    if words[0] == "CREATE" and (view := _view_name(words)):
        return _create_view(code, view, blocks)
    if kept := _kept_as_text(words):
        raise WJoinError(
            "WJ106",
            f"{kept} cannot take a window join",
            span=blocks[0].window_span,
            help="write CREATE OR REPLACE VIEW name AS SELECT …, and read or cache that view",
        )
    if inserts or words[0] == "INSERT":
        raise WJoinError(
            "WJ106",
            "this form of INSERT cannot take a window join",
            span=code.tokens[inserts[-1] if inserts else 0].span,
            help="write INSERT INTO target SELECT …, one statement for each target",
        )
    return statement_kinds.Query(blocks, span=_whole(code))


def _state_reads(code: Code) -> tuple[statement_kinds.StateRead, ...]:
    """Return what a statement reads of the state of queries."""
    tokens, found = code.tokens, list[statement_kinds.StateRead]()
    for place in range(1, len(tokens) - 3):
        of, what = tokens[place + 2], tokens[place + 3]
        if [each.word for each in tokens[place : place + 2]] != ["STATE", "OF"]:
            continue
        if tokens[place - 1].word not in ("FROM", "JOIN") and tokens[place - 1].text != ",":
            continue
        span = code.span(place, place + 4)
        if of.word == "QUERY" and is_name(what):
            found.append(statement_kinds.StateRead(identifier(what), span=span))
        elif of.word == "QUERY" and what.kind is Kind.STRING:
            folder = string_value(what.text, what.span)
            found.append(statement_kinds.StateRead(checkpoint=folder, span=span))
    return tuple(found)


def _state_select(code: Code, reads: tuple[statement_kinds.StateRead, ...]) -> statement_kinds.Statement:
    if code.first_word(0) in QUERY_WORDS and not find_blocks(code):
        return statement_kinds.StateSelect(reads, span=_whole(code))
    raise WJoinError(
        "WJ106",
        "the state of a query is read by a SELECT without a window join only",
        span=reads[0].span,
        help="write SELECT … FROM STATE OF QUERY name; of its rows, Python makes a view",
    )


def _kept_as_text(words: list[str]) -> str:
    """Return what a statement makes of which Spark keeps the text, and not the rows; empty for another."""
    if words[0] == "CACHE":
        return "CACHE TABLE … AS"
    if words[:2] == ["ALTER", "VIEW"]:
        return "ALTER VIEW"
    return "a function" if words[0] == "CREATE" and "FUNCTION" in words[1:5] else ""


def _whole(code: Code) -> Span:
    return code.span(0, len(code.tokens))


def _inserts(code: Code, start: int = 0) -> list[int]:
    """Return the places of INSERT in a statement: it begins with one, or with the query that is inserted."""
    end = len(code.tokens) if code.word(start) in ("WITH", "FROM") else start + 1
    return [
        place
        for place in code.level(start, end)
        if code.word(place) == "INSERT" and code.word(place + 1) in ("INTO", "OVERWRITE")
    ]


def _is_one_into(code: Code, inserts: list[int]) -> bool:
    return len(inserts) == 1 and code.word(inserts[0] + 1) == "INTO"


def _is_declaration(code: Code, words: list[str]) -> bool:
    """Return whether a statement is a declaration of wjoin's, well formed or not."""
    match words:
        case ["CREATE", *others]:
            return next((word for word in others if word not in _BETWEEN_CREATE), "") in ("STREAM", "SINK")
        case ["DROP", "STREAM" | "SINK", *_]:
            return len(code.tokens) > 2
        case ["DESCRIBE" | "DESC", "STREAM" | "SINK" | "QUERY" as noun, _, *_]:
            # DESCRIBE stream alone is about a table of that name, and Spark's DESCRIBE QUERY takes a SELECT.
            return is_name(code.tokens[2]) and (noun != "QUERY" or len(code.tokens) == 3)
        case ["SET", "WJOIN", *_]:
            return code.mark(2) == "."
        case ["SHOW", "STREAMS" | "SINKS" | "PREDICATES" | "QUERIES", *_] | ["STOP", "QUERY", *_]:
            return True
        case ["SHOW", "CREATE", "STREAM" | "SINK", *_] | ["ANALYZE", "STREAM", *_]:
            return True
    return words[:2] in (["ALTER", "STREAM"], ["ALTER", "SINK"])


def _refuse_flinks_table(code: Code, words: list[str]) -> None:
    """Raise WJ106 for a CREATE TABLE that has Flink's WATERMARK FOR."""
    if words[0] != "CREATE" or "TABLE" not in words[1:3]:
        return
    table = words.index("TABLE")
    for place in range(table + 1, len(code.tokens) - 1):
        if code.word(place) == "WATERMARK" and code.word(place + 1) == "FOR":
            span = code.span(0, table + 1)
            remedy = "write CREATE STREAM, and USING … OPTIONS (…) for WITH (…)"
            raise WJoinError("WJ106", "a table has no watermark", span=span, help=remedy)


def _declaration(code: Code) -> statement_kinds.Statement:
    refuse_unclosed(code)
    if [code.tokens[0].word, code.tokens[1].word] == ["ALTER", "SINK"]:
        raise WJoinError(
            "WJ106",
            "there is no ALTER SINK",
            span=code.span(0, 2),
            help="use CREATE OR REPLACE SINK",
        )
    try:
        return read_declaration(code.text, code.tokens)
    except SyntaxSlip as slip:
        raise explain(slip, "declaration") from None


def _execute_immediate(code: Code) -> statement_kinds.ExecuteImmediate:
    ends = (place for place in code.level(2, len(code.tokens)) if code.word(place) in ("INTO", "USING"))
    end = next(ends, len(code.tokens))
    return statement_kinds.ExecuteImmediate(code.span(2, end), end < len(code.tokens), span=_whole(code))


def _explain(code: Code) -> statement_kinds.Statement:
    if code.word(1) == "DELAY" and len(code.tokens) == 3 and is_name(code.tokens[2]):
        return statement_kinds.ExplainDelay(identifier(code.tokens[2]), span=_whole(code))
    mode = code.word(1) if code.word(1) in _EXPLAIN_MODES | _OTHER_MODES else ""
    start = 2 if mode else 1
    meant, start = _meant_rows(code, start) if mode == "MATCH" else ((), start)
    if (code.word(start), code.word(start + 1)) == ("STATEMENT", "SET"):
        if mode == "MATCH":
            message, remedy = "EXPLAIN MATCH explains one statement", "explain one INSERT INTO of the set"
            raise WJoinError("WJ503", message, span=code.tokens[1].span, help=remedy)
        body = _statement_set(code, start)
        return statement_kinds.ExplainSet(mode, body, span=_whole(code))
    blocks = find_blocks(code, start)
    # Whether one without a window clause is a window join is told where its streams are known.
    if not blocks and mode != "MATCH":
        return statement_kinds.SparkStatement(span=_whole(code))
    if mode in _OTHER_MODES:
        message = f"EXPLAIN {mode} is not available for a window join"
        raise WJoinError("WJ503", message, span=code.tokens[1].span)
    inserts = _inserts(code, start)
    if _is_one_into(code, inserts):
        inserted = _insert(code, inserts[0], start)
        if isinstance(inserted, statement_kinds.InsertInto) and isinstance(
            inserted.body, statement_kinds.Query
        ):
            return statement_kinds.Explain(mode, inserted.body, inserted.target, meant, span=_whole(code))
    if code.word(start) not in QUERY_WORDS and code.mark(start) != "(":
        # EXPLAIN CREATE VIEW v AS SELECT … explains the query.
        levels = code.level(start, len(code.tokens))
        start = next((place for place in levels if code.first_word(place) in QUERY_WORDS), start)
    query = statement_kinds.Query(blocks, span=code.span(start, len(code.tokens)))
    return statement_kinds.Explain(mode, query, meant=meant, span=_whole(code))


def _meant_rows(code: Code, place: int) -> tuple[tuple[statement_kinds.MeantRows, ...], int]:
    """Return the rows that EXPLAIN MATCH means, which stand at a place, and the place after them."""
    found: list[statement_kinds.MeantRows] = []
    while place < len(code.tokens) and is_name(code.tokens[place]) and code.mark(place + 1) == "(":
        name, closing = identifier(code.tokens[place]), code.partner[place + 1]
        if closing < 0:
            refuse_unclosed(code)
        if any(name.matches(each.stream.name) for each in found):
            message, remedy = f"EXPLAIN MATCH names {name.name} twice", "join its conditions with AND"
            raise WJoinError("WJ503", message, span=name.span, help=remedy)
        found.append(statement_kinds.MeantRows(name, code.span(place + 2, closing)))
        place = closing + 1
        if code.mark(place) != ",":
            break
        place += 1
    return tuple(found), place


def _statement_set(code: Code, start: int) -> statement_kinds.StatementSet:
    """Return the statement set of which STATEMENT SET stands at ``start``, or behind the word there."""
    body = _set_body(code.tokens, 0)
    last = len(code.tokens) - 1
    if not body or code.word(last) != "END" or last < body:
        remedy = (
            "write EXECUTE STATEMENT SET [name] [ON FAILURE STOP ALL | KEEP OTHERS] "
            "BEGIN INSERT INTO …; INSERT INTO …; END"
        )
        message = f"the statement set has no {'END' if body else 'BEGIN'}"
        raise WJoinError("WJ106", message, span=_whole(code), help=remedy)
    inserts = []
    for tokens in _divide(code.tokens[body:last]):
        found = _statement(pair(code.text, tokens, code.streams))
        if not isinstance(found, statement_kinds.InsertInto):
            message = "a statement set holds only INSERT INTO statements"
            raise WJoinError("WJ106", message, span=found.span, help="run the others by themselves")
        inserts.append(found)
    if not inserts:
        message, remedy = "the statement set is empty", "write an INSERT INTO for each sink"
        raise WJoinError("WJ106", message, span=_whole(code), help=remedy)
    failure = [code.word(place) for place in range(body - 5, body - 1)]
    begin = body - 1 - 4 * (failure in _ON_FAILURE)
    named = begin - 1 > next(place for place in range(body) if code.word(place) == "STATEMENT") + 1
    name = identifier(code.tokens[begin - 1]) if named else None
    span = code.span(start, len(code.tokens))
    return statement_kinds.StatementSet(name, tuple(inserts), failure == _ON_FAILURE[1], span=span)


def _alter_set(code: Code) -> statement_kinds.AlterSet:
    """Return a change of a statement set: ALTER STATEMENT SET, a name, and ADD or DROP."""
    tokens, what = code.tokens, code.word(4)
    if len(tokens) > 5 and is_name(tokens[3]):
        name = identifier(tokens[3])
        if what == "DROP" and len(tokens) == 6 and is_name(tokens[5]):
            return statement_kinds.AlterSet(name, dropped=identifier(tokens[5]), span=_whole(code))
        if what == "ADD":
            history = [token.word for token in tokens[-2:]] == ["WITH", "HISTORY"]
            added = _statement(pair(code.text, tokens[5 : len(tokens) - 2 * history], code.streams))
            if isinstance(added, statement_kinds.InsertInto):
                return statement_kinds.AlterSet(name, added=added, history=history, span=_whole(code))
    raise WJoinError(
        "WJ106",
        "this change of a statement set cannot be read",
        span=_whole(code),
        help="write ALTER STATEMENT SET name ADD INSERT INTO …, or ALTER STATEMENT SET name DROP sink",
    )


def _insert(code: Code, place: int, start: int = 0) -> statement_kinds.Statement:
    """Return the INSERT INTO at a place, before which the first part of its query may stand."""
    target, body = _target(code, place)
    columns, body = _insert_columns(code, body)
    blocks = find_blocks(code, start)
    begins_query = code.first_word(body) in QUERY_WORDS and target
    if begins_query:
        span = code.span(body if place == start else start, len(code.tokens))
        left_out = statement_kinds.NOTHING if place == start else code.span(place, body)
        query = (
            statement_kinds.Query(blocks, span=span, left_out=left_out)
            if blocks
            else statement_kinds.SparkStatement(span=span, left_out=left_out)
        )
        return statement_kinds.InsertInto(target, query, span=_whole(code), columns=columns)
    if not blocks:
        return statement_kinds.SparkStatement(span=_whole(code))
    marked = code.tokens[min(body, len(code.tokens) - 1)].span
    remedy = "write INSERT INTO target SELECT …, or INSERT INTO target (x, y) SELECT …"
    message = f"{code.mark(body)} is not supported in an INSERT of a window join"
    if code.mark(body) == "(":
        marked = code.span(body, code.after(body))
        message = "the column list of an INSERT cannot be read"
    raise WJoinError("WJ106", message, span=marked, help=remedy)


def _insert_columns(code: Code, place: int) -> tuple[tuple[syntax.Identifier, ...], int]:
    """Return the column list of an INSERT at a place, empty where a query stands there, and its end."""
    after = code.after(place) if code.mark(place) == "(" else place
    columns = tuple(map(identifier, code.names(place)))
    if not columns or code.first_word(after) not in QUERY_WORDS:
        return (), place
    for number, column in enumerate(columns):
        if any(column.matches(other.name) for other in columns[:number]):
            message = f"an INSERT names the column {column.name} twice"
            raise WJoinError("WJ106", message, span=column.span, help="give each column once")
    return columns, after


def _target(code: Code, start: int) -> tuple[tuple[syntax.Identifier, ...], int]:
    """Return the parts of the target of the INSERT INTO [TABLE] at ``start`` and the place after it."""
    return code.dotted(start + (3 if code.word(start + 2) == "TABLE" else 2))


def _view_name(words: list[str]) -> int:
    """Return the place after VIEW in CREATE [OR REPLACE] [TEMPORARY] VIEW, 0 for another CREATE."""
    for place, word in enumerate(words[1:], 1):
        if word == "VIEW":
            return place + 1
        if word not in _BETWEEN_CREATE:
            break
    return 0


def _create_view(code: Code, name: int, blocks: tuple[syntax.SelectBlock, ...]) -> statement_kinds.CreateView:
    if code.word(1) == "GLOBAL" or code.word(3) == "GLOBAL":
        span = code.tokens[1 if code.word(1) == "GLOBAL" else 3].span
        remedy = "leave GLOBAL out: the view exists only in its session"
        raise WJoinError("WJ106", "a view of a window join cannot be global", span=span, help=remedy)
    if name < len(code.tokens) and is_name(code.tokens[name]) and code.word(name + 1) == "AS":
        body = statement_kinds.Query(blocks, span=code.span(name + 2, len(code.tokens)))
        return statement_kinds.CreateView(
            identifier(code.tokens[name]), code.word(1) == "OR", body, span=_whole(code)
        )
    query = next(place for place in range(name, len(code.tokens)) if code.word(place) in QUERY_WORDS)
    raise WJoinError(
        "WJ106",
        "the head of the view of a window join cannot be read",
        span=code.span(name - 1, max(name, query)),
        help="write CREATE [OR REPLACE] VIEW name AS SELECT …",
    )
