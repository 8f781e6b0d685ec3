"""Files in a store that are none of its own: what editors, backups and file systems leave."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from mqlake.jobs.local import LocalEngine
from mqlake.jobs.rebuild import rebuild
from mqlake.jobs.verify import verify
from tests.jobs.logs import SEGMENT, LogWriter
from tests.jobs.model import read_index_files, read_queue_files

DIRECTORIES = (
    "",
    "commitlog",
    "consumequeue",
    "consumequeue/Topic",
    "consumequeue/Topic/0",
    "index",
    "config",
)
"""All directories of a store."""

NAMES = (
    ".DS_Store",
    "the-bad-empty-file",
    "README.txt",
    ".nfs000000000012d45700000001",
    f".{0:020d}.Xa81Qz",
    f"{0:020d}.bak",
    f"{0:020d}.gz",
    f"{0:020d}~",
    f"{0:019d}",
    f"copy of {0:020d}",
    "20260101000000000.bak",
    "Ünïcode name",
)
"""Names that no file of a store has."""


def make_store(path: Path) -> Path:
    log = LogWriter(path)
    for number in range(900):
        log.add(queue_id=number % 2)
    store = log.close()
    rebuild(store, LocalEngine(1), queue_file_size=2000, hash_slots=100, max_index=400)
    return store


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    store = make_store(tmp_path_factory.mktemp("whole") / "store")
    assert len(list((store / "commitlog").iterdir())) > 1
    return store


@pytest.fixture
def store(whole: Path, tmp_path: Path) -> Path:
    return shutil.copytree(whole, tmp_path / "store")


@pytest.mark.parametrize("directory", DIRECTORIES)
@pytest.mark.parametrize("content", [b"", b"\0\0\0\1Bud1" * 20])
def test_files_with_other_names_are_ignored(store: Path, directory: str, content: bytes) -> None:
    (store / directory).mkdir(exist_ok=True)
    for name in NAMES:
        (store / directory / name).write_bytes(content)

    report = verify(store, LocalEngine(1))

    assert (report.ok, report.damage, report.records) == (True, [], 900)


@pytest.mark.parametrize("directory", DIRECTORIES)
def test_directories_with_other_names_are_ignored(store: Path, directory: str) -> None:
    (store / directory).mkdir(exist_ok=True)
    for name in ("lost+found", ".snapshot", *NAMES):
        (store / directory / name / "0").mkdir(parents=True)

    report = verify(store, LocalEngine(1))

    assert (report.ok, report.damage, report.records) == (True, [], 900)


def last_segment(store: Path) -> int:
    return int(max(path.name for path in (store / "commitlog").iterdir()))


ODD: dict[str, Callable[[Path], object]] = {
    "an empty next segment": lambda s: s.joinpath(
        "commitlog", f"{last_segment(s) + SEGMENT:020d}"
    ).touch(),
    "an empty segment far away": lambda s: s.joinpath(
        "commitlog", f"{last_segment(s) + 10 * SEGMENT:020d}"
    ).touch(),
    "empty segments": lambda s: [
        s.joinpath("commitlog", f"{last_segment(s) + n * SEGMENT:020d}").touch() for n in (1, 2)
    ],
    "a queue id that is no number": lambda s: shutil.copytree(
        s / "consumequeue/Topic/0", s / "consumequeue/Topic/old"
    ),
    "a queue id with a leading zero": lambda s: shutil.copytree(
        s / "consumequeue/Topic/0", s / "consumequeue/Topic/00"
    ),
    "a topic without queues": lambda s: (s / "consumequeue/Ghost").mkdir(),
    "a queue without files": lambda s: (s / "consumequeue/My Topic ü/0").mkdir(parents=True),
    "an empty queue file": lambda s: s.joinpath("consumequeue/Topic/0", f"{20_000:020d}").touch(),
    "a copy of an index file": lambda s: shutil.copy(
        min((s / "index").iterdir()), s / "index" / f"copy of {min((s / 'index').iterdir()).name}"
    ),
    "a directory in place of a queue file": lambda s: s.joinpath(
        "consumequeue/Topic/0", f"{20_000:020d}"
    ).mkdir(),
}


@pytest.mark.parametrize("case", ODD)
def test_what_a_store_may_contain_is_no_damage(store: Path, case: str) -> None:
    ODD[case](store)

    report = verify(store, LocalEngine(1))

    assert (report.ok, report.damage, report.records) == (True, [], 900)


@pytest.mark.parametrize("case", ODD)
def test_a_rebuild_leaves_it_aside(store: Path, case: str) -> None:
    queues, index = read_queue_files(store), read_index_files(store)
    ODD[case](store)

    rebuild(store, LocalEngine(1))

    assert (queues, index) == (read_queue_files(store), read_index_files(store))
    assert verify(store, LocalEngine(1)).ok
