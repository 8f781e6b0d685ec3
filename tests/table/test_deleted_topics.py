"""Messages of deleted topics are not in a table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import mqlake
from mqlake.jobs.local import LocalEngine
from mqlake.jobs.rebuild import rebuild
from mqlake.query.store.options import read_options
from mqlake.query.store.place import open_store
from mqlake.query.store.position import StorePosition
from mqlake.query.store.starting import starting_position
from tests.jobs.logs import LogWriter


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a store in which A was deleted and created again, and B deleted."""
    log = LogWriter(tmp_path_factory.mktemp("deleted") / "store")
    for number in range(60):
        log.add("ABC"[number % 3], number % 2, body=b"old")
    log.forget("A")
    for number in range(9):
        log.add("AC"[number % 2], number % 3, body=b"new")
    store = log.close()
    first = log.offsets[60]
    (store / "config").mkdir()
    table = {"topics": {"A": first, "C": 0}, "others": first}
    (store / "config" / "incarnations.json").write_text(json.dumps(table))
    rebuild(store, LocalEngine(1), queue_file_size=2000, hash_slots=100, max_index=500)
    return store


def rows(store: Path, **options: Any) -> list[tuple[str, bytes]]:
    table = mqlake.open(store, columns=["topic", "body"], **options).to_arrow()
    return sorted(zip(table["topic"].to_pylist(), table["body"].to_pylist(), strict=True))


@pytest.mark.parametrize("path", ["auto", "scan", "queues"])
def test_only_living_messages_are_read(store: Path, path: str) -> None:
    expected = [("A", b"new")] * 5 + [("C", b"new")] * 4 + [("C", b"old")] * 20

    assert expected == rows(store, accessPath=path)
    assert expected[:5] == rows(store, accessPath=path, subscribe="A")


def test_keys_find_only_living_messages(store: Path) -> None:
    expected = [("A", b"new")] * 5

    assert expected == rows(store, keys="a", subscribe="A", accessPath="index")


def test_a_stream_starts_without_dead_messages_and_keeps_that(store: Path) -> None:
    options = read_options({"path": str(store), "startingOffsets": "earliest"}, streaming=True)
    with open_store(options.location) as opened:
        end = opened.snapshot.end.offset
        found = starting_position(opened, end, options)

    assert found.living is not None
    again = StorePosition.read(found.write())
    assert again == found
    assert again.at(100, None, None).selection == found.selection
    assert again.at(found.living.end, None, None).selection == ()
    assert StorePosition.read({"physicalOffset": 100}).selection == ()
