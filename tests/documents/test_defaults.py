"""Tables of settings in pages have names that exist, and their defaults."""

from __future__ import annotations

import re
from collections.abc import Iterator
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
    """Return the default of each setting, by its name."""
    return {
        field.encode_name: field.default for kind in kinds for field in msgspec.structs.fields(kind)
    }


def fault(row: Row, of: dict[str, Any]) -> str | None:
    """Return what is wrong with a row, None if its names exist and its values are the defaults."""
    unknown = [name for name in row.names if name not in of]
    if unknown:
        return f"{unknown} do not exist"
    stated = values(row.default)
    if len(stated) == 1:
        stated *= len(row.names)
    for name, value in zip(row.names, stated, strict=False):
        real = of[name]
        if value is not None and isinstance(real, int) and not is_equal(value, real, name):
            return f"{name}: {value} instead of {real}"
    return None


def values(text: str) -> list[bool | int | None]:
    """Return the values in a cell, in milliseconds and bytes; None for what is no such value."""
    return [_value(each.strip("`")) for each in _BETWEEN.split(text)]


def _value(text: str) -> bool | int | None:
    match = _VALUE.match(text)
    if match is None:
        return None
    if match["flag"]:
        return match["flag"] == "true"
    return int(match["number"].replace(",", "")) * UNITS[match["unit"]]


def is_equal(value: bool | int, real: bool | int, name: str) -> bool:
    return value == real or ("Seconds" in name and value == real * 1000)


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
        stated = [
            row for row in rows(page.read_text(encoding="utf-8")) if values(row.default) != [None]
        ]
        assert len(stated) > least
        assert {name for row in stated for name in row.names} <= set(of)


@pytest.mark.parametrize(
    ("names", "default", "wrong"),
    [
        (("a",), "16 KiB", None),
        (("a", "b"), "16,384; true", None),
        (("a", "c"), "16,384 each", None),
        (("a",), "16", "a: 16 instead of 16384"),
        (("b",), "false", "b: False instead of True"),
        (("d",), "1", "['d'] do not exist"),
        (("a",), "", None),
        (("s", "e"), "none, 3 s", None),
        (("s", "e"), "none, 4 s", "e: 4000 instead of 3000"),
    ],
)
def test_what_is_wrong(names: tuple[str, ...], default: str, wrong: str | None) -> None:
    assert (
        fault(Row(names, default), {"a": 1 << 14, "b": True, "c": 1 << 14, "e": 3000, "s": ""})
        == wrong
    )
