"""What is said about a place that is no store."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqlake.errors import StoreError
from mqlake.storage.memory import MemoryDirectory
from mqlake.store.reader import StoreReader


def said(store: Path | MemoryDirectory) -> str:
    with pytest.raises(StoreError) as raised:
        StoreReader.open(store)
    return str(raised.value)


def test_nothing_is_looked_for_near_a_directory_that_is_not_local() -> None:
    assert (
        said(MemoryDirectory({})) == "memory:: there is no commitlog/ in it: give the store itself"
    )


def test_stores_near_a_local_directory_are_named(tmp_path: Path) -> None:
    assert said(tmp_path / "none").endswith("none: the directory does not exist")
    (tmp_path / "store" / "commitlog").mkdir(parents=True)
    assert said(tmp_path).endswith(f"give the store itself, {tmp_path / 'store'}")
