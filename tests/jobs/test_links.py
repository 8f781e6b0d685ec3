"""Directories and files of a store that were moved to another disk, and linked."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from mqlake.jobs.local import LocalEngine
from mqlake.jobs.rebuild import rebuild
from mqlake.jobs.verify import verify
from tests.jobs.logs import LogWriter
from tests.jobs.model import read_index_files, read_queue_files

PARTS = ("commitlog", "consumequeue", "index", "config")
LINKED = (*((part,) for part in PARTS), PARTS, ("segment",), ("whole",))


def make_store(path: Path) -> Path:
    log = LogWriter(path)
    for number in range(300):
        log.add("AB"[number % 2], number % 3)
    store = log.close()
    (store / "config").mkdir()
    rebuild(store, LocalEngine(1), queue_file_size=2000, hash_slots=100, max_index=400)
    return store


def link(store: Path, other: Path, what: Sequence[str]) -> list[Path]:
    """Move parts of a store to another directory, and link them; return the links."""
    links = [
        {"segment": store / "commitlog" / f"{0:020d}", "whole": store}.get(part, store / part)
        for part in what
    ]
    for path in links:
        target = other / path.name
        shutil.move(path, target)
        path.symlink_to(target)
    return links


@pytest.fixture(params=["same disk", "another disk"])
def other(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    if request.param == "same disk":
        (tmp_path / "other").mkdir()
        yield tmp_path / "other"
        return
    device = tmp_path.stat().st_dev
    others = (Path("/dev/shm"), Path(tempfile.gettempdir()), Path.cwd() / "build")
    found = (one for one in others if os.access(one, os.W_OK) and one.stat().st_dev != device)
    if (disk := next(found, None)) is None:
        pytest.skip("this machine has no second file system that tests can write")
    factory: pytest.TempPathFactory = request.getfixturevalue("tmp_path_factory")
    path = disk / f"mqlake-{os.getpid()}-{factory.mktemp('links').name}"
    path.mkdir()
    yield path
    shutil.rmtree(path)


@pytest.mark.parametrize("what", LINKED, ids="+".join)
def test_a_rebuild_in_place_keeps_links(what: Sequence[str], other: Path, tmp_path: Path) -> None:
    store = make_store(tmp_path / "store")
    queues, index = read_queue_files(store), read_index_files(store)
    links = link(store, other, what)
    targets = {path: path.readlink() for path in links}
    for path in (store / "consumequeue").glob("*/*/*"):
        path.write_bytes(bytes(2000))

    assert not verify(store, LocalEngine(1)).ok
    rebuild(store, LocalEngine(1))

    assert verify(store, LocalEngine(1)).ok
    assert (queues, index) == (read_queue_files(store), read_index_files(store))
    assert targets == {path: path.readlink() for path in links if path.is_symlink()}
    assert sorted(target.name for target in targets.values()) == sorted(
        path.name for path in other.iterdir()
    )
    for directory in (store, *targets.values()):
        assert not list(directory.rglob(".mqlake*"))
