"""Say why the parser refuses a command line, and what to type instead.

The parser suggests options whose names are similar. What people mean is often another one: an
argument, or what another command, or another tool, calls the same thing.
"""

from __future__ import annotations

import re
from typing import Any

_SAME = (
    {"--topic", "--topics", "--subscribe"},
    {"--out", "--output", "--target"},
    {"--namesrvAddr", "--namesrv", "--name-server", "--name-servers", "--nameserver"},
    {"--group", "--consumer-group", "--group-id"},
    {"--max", "--limit", "--count"},
    {"--from", "--starting-offsets", "--offset"},
)
"""Options that mean the same; a command has one of them at most."""

_POSITIONS = ("--store", "--group", "--out")
"""Options that people give as arguments, the most likely first."""

_DATE = re.compile(r"(?P<date>'[0-9]{4}-[^']*') is not a valid int")
_EXTRA = re.compile(r"unexpected extra argument\(s\) \((?P<first>\S+)")


def advice(refusal: Any) -> str:
    """Return why a command line is refused, and what to type instead if that is known.

    Args:
        refusal: the error of the parser, whose classes belong to Typer.
    """
    reason = str(refusal.format_message()).rstrip(".")
    context = getattr(refusal, "ctx", None)
    if context is None:
        return reason
    if wanted := getattr(refusal, "option_name", None):
        return _of_unknown(wanted, context) or reason
    parameter: Any = getattr(refusal, "param", None)
    if getattr(parameter, "metavar", None) == "MS" and (found := _DATE.search(reason)):
        return (
            f"{parameter.opts[0]} needs milliseconds since 1970, not {found['date']}; date -d"
            f" {found['date']} +%s000 prints them"
        )
    if found := _EXTRA.search(reason):
        return f"{reason}{_as_option(found['first'].rstrip(')'), context)}"
    return reason


def _of_unknown(wanted: str, context: Any) -> str | None:
    """Return what to give instead of an option; None if that is not known."""
    for parameter in context.command.params:
        if parameter.param_type_name == "argument" and f"--{parameter.name}" == wanted:
            shown = parameter.metavar
            return f"No such option: {wanted}; it is an argument: {context.command_path} {shown}"
    for same in _SAME:
        if wanted in same and (known := sorted(same & _options(context))):
            return f"No such option: {wanted}; it is {known[0]} here"
    return None


def _as_option(argument: str, context: Any) -> str:
    known = _options(context)
    option = next((one for one in _POSITIONS if one in known), None)
    return "" if option is None else f"; perhaps {option} {argument} is meant"


def _options(context: Any) -> set[str]:
    return {name for parameter in context.command.params for name in parameter.opts}
