"""What is said about a place that is no store."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqlake.errors import StoreError
from mqlake.storage.memory import MemoryDirectory
from mqlake.store.log.nearby_store import why_no_store
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


def test_a_path_that_only_a_shell_understands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "store" / "commitlog").mkdir(parents=True)
    for path in ("~/store", "$HOME/store"):
        assert why_no_store(path) == (
            "the directory does not exist: only a shell replaces ~ and variables; give "
            f"{tmp_path}/store"
        )
    assert why_no_store("~/other") == "the directory does not exist"
