"""Parse options from the strings that Spark passes; errors suggest the nearest known name.

This module knows no options: a table of `Option` defines them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from mqlake.errors import FormatError
from mqlake.query.reading.foreign_options import foreign_column, foreign_option

_LOOKS_LIKE_SECONDS = range(10**9, 10**10)
"""Seconds of the years 2001 to 2286; as milliseconds, days of early 1970."""

_NEAR = 0.6
"""The least similarity of a mistyped name to the name that was meant."""

_SHOWN = 5
"""Names that a message lists."""

_DURATION = re.compile(r"(\d{1,12}) *([a-z]*)")
_UNITS = {
    "": 1,
    "ms": 1,
    "s": 1000,
    "m": 60_000,
    "min": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
}


class Option(NamedTuple):
    """One option.

    Attributes:
        name: the documented name; case does not matter.
        parse: converts the text to the value; raises ValueError with a text that describes the
            expected value.
        default: the text of the default value, or None without a default.
        queries: "both", "batch" or "streaming".
        meaning: one line for the table of options.
        aliases: other names for it.
    """

    name: str
    parse: Callable[[str], Any]
    default: str | None
    queries: str
    meaning: str
    aliases: tuple[str, ...] = ()


def parse_options(table: Sequence[Option], given: Mapping[str, str]) -> dict[str, Any]:
    """Return the values by name: the given ones and the defaults; None without either.

    Raises:
        FormatError: an option or a value does not exist, or an option is given twice.
    """
    names = {name.lower(): option for option in table for name in (option.name, *option.aliases)}
    values: dict[str, Any] = {
        option.name: None if option.default is None else option.parse(option.default)
        for option in table
    }
    seen: dict[str, str] = {}
    for name, text in given.items():
        option = names.get(name.lower())
        if option is None:
            raise FormatError(_unknown(name, [other for each in table for other in _names(each)]))
        if option.name in seen:
            raise FormatError(f"options {seen[option.name]} and {name} are the same: give only one")
        seen[option.name] = name
        values[option.name] = _value(option, text)
    return values


def _names(option: Option) -> tuple[str, ...]:
    return (option.name, *option.aliases)


def _value(option: Option, text: str) -> Any:
    try:
        return option.parse(text.strip())
    except ValueError as error:
        raise FormatError(f"option {option.name}: {text[:200]!r} is not {error}") from None


def _unknown(name: str, known: Sequence[str]) -> str:
    remedy = foreign_option(name, known) or suggestion(name, known)
    return f"there is no option {name[:200]!r}; {remedy}"


def is_near(text: str, name: str) -> bool:
    """Return whether a text may be a mistyped name."""
    from difflib import SequenceMatcher  # Imported late: only errors need it.

    return SequenceMatcher(None, text.lower(), name.lower()).ratio() >= _NEAR


def nearest(text: str, known: Sequence[str]) -> str:
    """Return the element of `known` that is most similar to a text, ignoring case."""
    from difflib import SequenceMatcher  # Imported late: only errors need it.

    return max(known, key=lambda one: SequenceMatcher(None, text.lower(), one.lower()).ratio())


def suggestion(text: str, known: Sequence[str]) -> str:
    """Return the name that a mistyped one may mean, or the first ones that exist."""
    near = nearest(text, known)
    return f"the nearest is {near}" if is_near(text, near) else f"there are {listed(known)}"


def listed(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are."""
    shown = ", ".join(names[:_SHOWN])
    more = len(names) - _SHOWN
    return f"{shown} and {more} more" if more > 0 else shown


def meant_column(name: str, columns: Sequence[str]) -> str:
    """Return which column is probably meant by a name that no column has."""
    return foreign_column(name, columns) or suggestion(name, columns)


def known_columns(names: Sequence[str], columns: Sequence[str]) -> tuple[str, ...]:
    """Return the columns with these names, in any case.

    Raises:
        FormatError: a column does not exist, or is named twice.
    """
    known = {name.lower(): name for name in columns}
    for number, name in enumerate(names):
        if name.lower() not in known:
            raise FormatError(f"there is no column {name[:200]!r}; {meant_column(name, columns)}")
        if name.lower() in (other.lower() for other in names[:number]):
            raise FormatError(f"column {name} is named twice")
    return tuple(known[name.lower()] for name in names)


def text(value: str) -> str:
    """Accept any text that is not empty."""
    if not value:
        raise ValueError("a text")
    return value


def boolean(value: str) -> bool:
    """Accept true or false."""
    return choice("true", "false")(value) == "true"


def choice(*words: str) -> Callable[[str], str]:
    """Accept one of a few words, in any case."""

    def parse(value: str) -> str:
        if value.lower() in words:
            return value.lower()
        near = nearest(value, words)
        hint = f"; the nearest is {near}" if is_near(value, near) else ""
        raise ValueError(f"one of {', '.join(words)}{hint}")

    return parse


def whole(least: int = 0) -> Callable[[str], int]:
    """Accept an integer of at least `least`, below 2^63."""

    def parse(value: str) -> int:
        if re.fullmatch(r"\d{1,19}", value) and least <= int(value) < 1 << 63:
            return int(value)
        raise ValueError(f"an integer of at least {least}")

    return parse


def milliseconds(value: str) -> int:
    """Accept a time in milliseconds since 1970; seconds are recognized as a mistake."""
    try:
        found = whole()(value)
    except ValueError:
        raise ValueError("milliseconds since 1970, such as 1700000000000") from None
    if found in _LOOKS_LIKE_SECONDS:
        raise ValueError(f"milliseconds since 1970, but looks like seconds: give {found}000")
    return found


def duration(value: str) -> int:
    """Accept a duration such as 15m, 10s or 500ms; return milliseconds."""
    found = _DURATION.fullmatch(value.lower())
    if found is None or found[2] not in _UNITS:
        raise ValueError("a duration such as 500ms, 10s, 15m, 2h or 1d")
    return int(found[1]) * _UNITS[found[2]]


def words(separator: str) -> Callable[[str], tuple[str, ...]]:
    """Accept texts with a separator between them; at least one."""

    def parse(value: str) -> tuple[str, ...]:
        found = tuple(part.strip() for part in value.split(separator) if part.strip())
        if not found:
            raise ValueError(f"a list separated by {separator!r}")
        return found

    return parse


def pattern(value: str) -> str:
    """Accept a regular expression."""
    try:
        re.compile(value)
    except re.error as error:
        raise ValueError(f"a regular expression: {error}") from None
    return text(value)
