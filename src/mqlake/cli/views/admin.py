"""Results of administrative commands: tables whose columns are a Struct's fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from mqlake.cli.text import local_time, printable
from mqlake.cli.views.tables import NUMBER, TEXT, named_values, rows

if TYPE_CHECKING:
    from rich.console import RenderableType

_TIMES = frozenset(("last_updated", "last_consumed", "last_heartbeat"))


def table(title: str, found: Sequence[msgspec.Struct]) -> RenderableType:
    """Return a table with one row for each value."""
    if not found:
        return rows(title, [("none", TEXT)])
    fields = msgspec.structs.fields(type(found[0]))
    drawn = rows(title, [(field.encode_name, _kind(found[0], field.name)) for field in fields])
    for each in found:
        drawn.add_row(*(_text(field.name, getattr(each, field.name)) for field in fields))
    return drawn


def _kind(row: msgspec.Struct, name: str) -> str:
    is_number = isinstance(getattr(row, name), (int, float)) and name not in _TIMES
    return NUMBER if is_number else TEXT


def _text(name: str, value: object) -> str:
    if name in _TIMES and isinstance(value, int):
        return local_time(value) if value else ""
    if isinstance(value, float):
        return f"{value:.2f}"
    return printable(str(value))


def facts(found: Mapping[str, Any]) -> RenderableType:
    """Return names and values; the members of a nested value are shown beside its name."""
    values: list[tuple[str, str]] = []
    for name, value in found.items():
        if isinstance(value, Mapping):
            inner = "\n".join(f"{key}={each}" for key, each in value.items())  # pyright: ignore[reportUnknownVariableType]
            values.append((printable(name), inner))
        else:
            values.append((printable(name), printable(str(value))))
    return named_values(values)
