"""Tables of settings in pages have names that exist, and their defaults.

The cell of a default has one value for all settings of its row, or one for each. Settings that are
texts have a text in backticks, or nothing, or "none"; one that names another setting has its value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from mqlake.broker.settings import BrokerSettings
from mqlake.namesrv.settings import NamesrvSettings
from mqlake.replication.settings import ReplicationSettings
from mqlake.store.settings import StoreSettings
from tests.documents.pages import ROOT

DOCS = ROOT / "docs"
OF_NAME_SERVER = DOCS / "name-server.md"
OF_BROKER = tuple(DOCS / f"{page}.md" for page in ("broker", "replication", "pop", "priorities"))

UNITS = {None: 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "s": 1000}

_TABLE = re.compile(r"(?:^\|.*\|\n)+", re.MULTILINE)
_NAME = re.compile(r"`([\w.]+)`")
_QUOTED = re.compile(r"`(.*)`")
_BETWEEN = re.compile(r"[,;] ")
_VALUE = re.compile(
    r"(?P<flag>true|false)\b|(?P<number>-?\d+(?:,\d{3})*)(?: (?P<unit>KiB|MiB|GiB|s)\b)?"
)


class Row(NamedTuple):
    """A row of a table: the settings that it names, and the text of their defaults."""

    names: tuple[str, ...]
    default: str


def rows(text: str) -> Iterator[Row]:
    """Yield the rows of each table that has the columns `setting` and `default`."""
    for table in _TABLE.findall(text):
        head, _, *lines = (cells(line) for line in table.splitlines())
        if "setting" not in head or "default" not in head:
            continue
        for line in lines:
            names = tuple(_NAME.findall(line[head.index("setting")]))
            if names:
                yield Row(names, line[head.index("default")])


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def defaults(*kinds: type[Any]) -> dict[str, Any]:
    """Return the default of each setting, by its name; an enumeration's is its value."""
    found = {
        field.encode_name: getattr(made, field.name)
        for made in (kind() for kind in kinds)
        for field in msgspec.structs.fields(made)
    }
    return {name: each.value if isinstance(each, Enum) else each for name, each in found.items()}


def fault(row: Row, of: dict[str, Any]) -> str | None:
    """Return what is wrong with a row, None if its names exist and its values are the defaults."""
    unknown = [name for name in row.names if name not in of]
    if unknown:
        return f"{unknown} do not exist"
    stated = values(row.default)
    if len(row.names) == 1 or len(stated) == 1:
        stated = stated[:1] * len(row.names)
    if len(stated) != len(row.names):
        return f"{len(stated)} values of {len(row.names)} settings"
    for name, text in zip(row.names, stated, strict=True):
        if not is_equal(text, of[name], name, of):
            return f"{name}: {text} instead of {of[name]!r}"
    return None


def values(text: str) -> list[str]:
    """Return the values in a cell."""
    return [each.strip() for each in _BETWEEN.split(text)]


def number(text: str) -> bool | int | None:
    """Return the value that a text begins with, in milliseconds and bytes; None for others."""
    match = _VALUE.match(text.strip("`"))
    if match is None:
        return None
    if match["flag"]:
        return match["flag"] == "true"
    return int(match["number"].replace(",", "")) * UNITS[match["unit"]]


def is_equal(text: str, real: object, name: str, of: dict[str, Any]) -> bool:
    """Return whether a text states the default of a setting."""
    if isinstance(real, int):
        value = number(text)
        return value is not None and (value == real or _are_seconds(value, real, name))
    if text in ("", "none"):
        return real == ""
    quoted = _QUOTED.fullmatch(text)
    if quoted is None:
        return False
    return str(real) == quoted[1] or (real == "" and quoted[1] in of)


def _are_seconds(value: int, real: int, name: str) -> bool:
    return "Seconds" in name and value == real * 1000


@pytest.mark.parametrize("page", OF_BROKER, ids=lambda page: page.name)
def test_defaults_of_a_broker(page: Path) -> None:
    of = defaults(BrokerSettings, ReplicationSettings, StoreSettings)
    check(page, of)


def test_defaults_of_a_name_server() -> None:
    check(OF_NAME_SERVER, defaults(NamesrvSettings))


def check(page: Path, of: dict[str, Any]) -> None:
    found = list(rows(page.read_text(encoding="utf-8")))
    wrong = [text for row in found if (text := fault(row, of)) is not None]
    assert wrong == []


def test_rows_are_found() -> None:
    of = defaults(BrokerSettings, ReplicationSettings, StoreSettings)
    for page, least in ((DOCS / "broker.md", 20), (DOCS / "replication.md", 15)):
        stated = list(rows(page.read_text(encoding="utf-8")))
        assert len(stated) > least
        assert {name for row in stated for name in row.names} <= set(of)


@pytest.mark.parametrize(
    ("names", "default", "wrong"),
    [
        (("a",), "16 KiB", None),
        (("a", "b"), "16,384; true", None),
        (("a", "c"), "16,384 each", None),
        (("a",), "16", "a: 16 instead of 16384"),
        (("b",), "false", "b: false instead of True"),
        (("d",), "1", "['d'] do not exist"),
        (("a",), "", "a:  instead of 16384"),
        (("a",), "none", "a: none instead of 16384"),
        (("a",), "16 KiB, of which 1 KiB is kept", None),
        (("s", "e"), "none, 3 s", None),
        (("s", "e"), "none, 4 s", "e: 4 s instead of 3000"),
        (("s", "e", "a"), "none, 3 s", "2 values of 3 settings"),
        (("a",), "16,384, and", None),
        (("t",), "`x;y`", None),
        (("t",), "none", "t: none instead of 'x;y'"),
        (("t",), "`x`", "t: `x` instead of 'x;y'"),
        (("t",), "x;y", "t: x;y instead of 'x;y'"),
        (("s",), "`t`", None),
        (("s",), "`x`", "s: `x` instead of ''"),
    ],
)
def test_what_is_wrong(names: tuple[str, ...], default: str, wrong: str | None) -> None:
    of = {"a": 1 << 14, "b": True, "c": 1 << 14, "e": 3000, "s": "", "t": "x;y"}
    assert fault(Row(names, default), of) == wrong
