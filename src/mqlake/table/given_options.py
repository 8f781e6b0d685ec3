"""Turn keyword arguments into the options of the Spark source, which are strings."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec

from mqlake.errors import FormatError

_SEPARATORS = {"tags": "||", "subexpression": "||", "keys": " "}
"""The separator of options that take several values; a comma for all others."""


def option_texts(given: Mapping[str, object]) -> dict[str, str]:
    """Return options as strings; those that are None are left out.

    Args:
        given: values by option name: strings, numbers, booleans, datetimes, sequences of strings,
            and mappings for options that take JSON.

    Raises:
        FormatError: a value is of a type that no option takes.
    """
    return {name: _text(name, value) for name, value in given.items() if value is not None}


def _text(name: str, value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, dt.datetime):
        return str(milliseconds(name, value))
    if isinstance(value, Mapping):
        return msgspec.json.encode(cast("Mapping[Any, Any]", value)).decode()
    if isinstance(value, Sequence):
        return _joined(name, cast("Sequence[object]", value))
    raise FormatError(f"option {name}: {type(value).__name__} is not a string, number or list")


def _joined(name: str, values: Sequence[object]) -> str:
    separator = _SEPARATORS.get(name.lower(), ",")
    for value in values:
        if not isinstance(value, str) or separator in value:
            raise FormatError(f"option {name}: {value!r} is not a string without {separator!r}")
    return separator.join(cast("Sequence[str]", values))


def milliseconds(name: str, time: dt.datetime) -> int:
    """Return a point in time as milliseconds since 1970, rounded down.

    Raises:
        FormatError: the datetime has no time zone.
    """
    if time.tzinfo is None:
        raise FormatError(f"{name}: {time!r} has no time zone; pass an aware datetime")
    return (time - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(milliseconds=1)
