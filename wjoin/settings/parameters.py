"""Values of named parameters in declarations: in options, addresses of sites, and settings."""

from collections.abc import Mapping
from dataclasses import replace

from wjoin.grammar.errors import WJoinError
from wjoin.grammar.statement_kinds import Composed, CreateSink, CreateStream
from wjoin.grammar.syntax import Parameter
from wjoin.grammar.tokens import Kind, scan


def given_stream(statement: CreateStream, params: Mapping[str, object]) -> CreateStream:
    """Return a declaration with the values of its parameters, but for that of a delay.

    Raises WJoinError WJ212 for a parameter without a value.
    """
    site = statement.site
    if site is not None:
        given = tuple(_value(each, params) for each in site.given)
        site = replace(site, addresses=(*site.addresses, *given), given=())
    return replace(statement, options=_options(statement, params), composed=(), site=site)


def given_sink(statement: CreateSink, params: Mapping[str, object]) -> CreateSink:
    """Return a declaration with the values of its parameters; as ``given_stream``."""
    return replace(statement, options=_options(statement, params), composed=())


def _options(
    statement: CreateStream | CreateSink, params: Mapping[str, object]
) -> tuple[tuple[str, str], ...]:
    return (*statement.options, *((name, _composed(value, params)) for name, value in statement.composed))


def _composed(value: Composed, params: Mapping[str, object]) -> str:
    return "".join(part if isinstance(part, str) else _value(part, params) for part in value.parts)


def _value(parameter: Parameter, params: Mapping[str, object]) -> str:
    if params.get(parameter.name) is None:
        raise WJoinError("WJ212", f"the parameter :{parameter.name} has no value", span=parameter.span)
    value = params[parameter.name]
    return str(value).lower() if isinstance(value, bool) else str(value)


def setting_value(written: str, params: Mapping[str, object]) -> str:
    """Return the value of a setting as SET has it, that of a parameter where it is one.

    Raises WJoinError WJ212.
    """
    tokens = scan(written)
    if len(tokens) != 1 or tokens[0].kind is not Kind.PARAMETER:
        return written
    name = tokens[0].text[1:]
    return _value(Parameter(name, False, span=tokens[0].span), params)
