"""An archive has the closed segments and what is derived from them, whenever a run is killed."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from mqlake.errors import JobError, StoreError
from mqlake.jobs.archive.check import ArchiveCheckReport, check
from mqlake.jobs.archive.job import ArchiveReport, archive
from mqlake.jobs.local import LocalEngine
from mqlake.jobs.rebuild import rebuild
from mqlake.storage.local import LocalDirectory
from mqlake.storage.object_target import LocalTarget
from mqlake.storage.protocol import Directory
from mqlake.store import BlockingMessageStore
from mqlake.store.archive.archived import ArchivedDirectory, read_manifest
from mqlake.store.archive.opening import open_place
from mqlake.store.reader import StoreReader
from mqlake.store.results import QueueRange
from tests.golden import NAMES, store
from tests.jobs.logs import LogWriter
from tests.query.store.growing import GrowingStore

SEVERAL_SEGMENTS = [name for name in NAMES if name != "rmq5-default"]


class KilledError(Exception):
    """The run has been killed."""


class KillingTarget(LocalTarget):
    """A target whose process is killed in the middle of one of its operations."""

    def __init__(self, root: Path, left: int) -> None:
        super().__init__(root)
        self._left = left

    def put(self, path: str, size: int, chunks: Iterable[bytes]) -> None:
        self._step()
        if not self._left:
            with (Path(self.directory.describe()) / "half.tmp").open("wb") as half:
                half.write(b"".join(chunks)[: size // 2])
            raise KilledError
        super().put(path, size, chunks)

    def remove(self, path: str) -> None:
        self._step()
        super().remove(path)

    def _step(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise KilledError


def archived(path: Path, to: Path) -> ArchiveReport:
    return archive(path, LocalTarget(to))


def checked(to: Path) -> ArchiveCheckReport:
    report = check(LocalDirectory(to), LocalEngine(1))
    assert report.damage == []
    return report


def files_of(directory: Directory, path: str = "") -> dict[str, bytes]:
    """Return the bytes of all files below a path."""
    found: dict[str, bytes] = {}
    for name in directory.names(path):
        below = f"{path}/{name}" if path else name
        if directory.is_directory(below):
            found |= files_of(directory, below)
        else:
            file = directory.open(below)
            found[below] = bytes(file.view())
            file.close()
    return found


@pytest.mark.parametrize("name", NAMES)
def test_an_archive_has_the_closed_part_of_a_store(name: str, tmp_path: Path) -> None:
    path, to = store(name).path, tmp_path / "archive"
    report = archived(path, to)
    assert checked(to).objects == report.segments + report.files
    assert report.segments == max(0, len(list((path / "commitlog").iterdir())) - _open(path))

    original = LocalDirectory(path)
    for file, data in files_of(ArchivedDirectory(LocalDirectory(to))).items():
        opened = original.open(file)
        whole = bytes(opened.view())
        opened.close()
        if file.startswith("consumequeue/"):
            # Entries of what is not archived are left out.
            entries = data.rstrip(b"\0")
            assert whole.startswith(entries)
            assert len(data) == len(whole)
        else:
            assert data == whole

    again = archived(path, to)
    assert (again.new_segments, again.new_files, again.bytes_copied) == (0, 0, 0)


@pytest.mark.parametrize("name", SEVERAL_SEGMENTS)
def test_a_store_is_restored_from_an_archive(name: str, tmp_path: Path) -> None:
    """As docs/archive.md says: objects are extended to the sizes that the manifest has."""
    path, to, restored = store(name).path, tmp_path / "archive", tmp_path / "restored"
    assert archived(path, to).segments
    shutil.copytree(to / "commitlog", restored / "commitlog")
    for segment in json.loads((to / "manifest.json").read_text())["segments"]:
        os.truncate(restored / segment["object"], segment["size"])
    whole = files_of(LocalDirectory(path), "commitlog")
    log = files_of(LocalDirectory(restored), "commitlog")
    assert log == {file: whole[file] for file in log}
    assert rebuild(restored, LocalEngine(1)).damage == []


def test_an_archive_is_not_rebuilt_in_place(tmp_path: Path) -> None:
    """Its manifest would name files that no longer exist, or have other contents."""
    growing, to = GrowingStore(tmp_path / "store"), tmp_path / "archive"
    growing.grow(60)
    archived(growing.path, to)
    before = contents(to)
    with pytest.raises(JobError, match="this is an archive"):
        rebuild(to, LocalEngine(1))
    assert contents(to) == before


def _open(path: Path) -> int:
    """Return how many segments of a store are not closed."""
    with StoreReader.open(path) as reader:
        end = reader.max_offset
    return sum(
        int(segment.name) + segment.stat().st_size > end
        for segment in (path / "commitlog").iterdir()
    )


def queues_of(reader: StoreReader) -> dict[str, list[QueueRange]]:
    return {
        topic: [reader.queue(topic, queue_id) for queue_id in reader.queues(topic)]
        for topic in reader.topics()
    }


@pytest.mark.parametrize("name", NAMES)
def test_archive_and_live_directory_are_one_store(name: str, tmp_path: Path) -> None:
    golden = store(name)
    path, to = golden.copy(tmp_path / "store"), tmp_path / "archive"
    report = archived(path, to)
    with StoreReader.open(path) as reader:
        before = reader.inspect()
        topics = {
            topic: [reader.queue(topic, q) for q in reader.queues(topic)]
            for topic in reader.topics()
        }
    # Retention removes what is archived.
    for segment in sorted((path / "commitlog").iterdir()):
        if int(segment.name) < report.max_offset:
            segment.unlink()
    with StoreReader.open(open_place(str(path), str(to))) as reader:
        after = reader.inspect()
        assert {
            topic: [reader.queue(topic, q) for q in reader.queues(topic)]
            for topic in reader.topics()
        } == topics
    assert after == before


@pytest.mark.parametrize("seed", range(4))
def test_runs_that_are_killed_are_resumed(seed: int, tmp_path: Path) -> None:
    growing = GrowingStore(tmp_path / "store", seed)
    to, left = tmp_path / "archive", seed
    for _ in range(6):
        growing.grow(25)
        while True:
            try:
                archive(growing.path, KillingTarget(to, left))
                break
            except KilledError:
                if read_manifest(LocalDirectory(to)):
                    checked(to)
                left += 3
        left %= 7
    report = archived(growing.path, to)
    checked(to)
    for segment in sorted((growing.path / "commitlog").iterdir()):
        if int(segment.name) < report.max_offset:
            segment.unlink()
    with StoreReader.open(open_place(str(growing.path), str(to))) as reader:
        found = [
            record.keys[0]
            for topic in reader.topics()
            for queue_id in reader.queues(topic)
            for record in reader.get(topic, queue_id, 0, max=1000).records
        ]
    assert sorted(found) == sorted(growing.keys)


def test_objects_that_change_stay_for_readers_of_the_manifest_before(tmp_path: Path) -> None:
    growing = GrowingStore(tmp_path / "store")
    growing.grow(60)
    to = tmp_path / "archive"
    archived(growing.path, to)
    old = ArchivedDirectory(LocalDirectory(to))
    before = files_of(old)
    growing.grow(60)
    archived(growing.path, to)
    assert files_of(old) == before
    growing.grow(60)
    archived(growing.path, to)
    objects = {path.relative_to(to).as_posix() for path in to.rglob("*") if path.is_file()} - {
        "manifest.json"
    }
    manifest = read_manifest(LocalDirectory(to))
    assert manifest is not None
    assert objects == {file.object for file in manifest.all_files} | set(manifest.superseded)


def test_what_retention_removed_first_is_reported(tmp_path: Path) -> None:
    growing = GrowingStore(tmp_path / "store")
    growing.grow(60)
    to = tmp_path / "archive"
    end = archived(growing.path, to).max_offset
    growing.grow(90)
    for segment in sorted((growing.path / "commitlog").iterdir())[:-3]:
        segment.unlink()
    first = min(int(segment.name) for segment in (growing.path / "commitlog").iterdir())
    (gap,) = archived(growing.path, to).missing
    assert (gap.start, gap.end) == (end, first)


def test_the_archive_of_another_store_is_refused(tmp_path: Path) -> None:
    growing, to = GrowingStore(tmp_path / "store"), tmp_path / "archive"
    growing.grow(60)
    archived(growing.path, to)
    shutil.rmtree(growing.path)
    other = GrowingStore(growing.path, seed=7)
    other.grow(70)
    with pytest.raises(StoreError, match="it is the archive of another store, or this"):
        archived(other.path, to)
    with pytest.raises(StoreError, match="it is the archive of another store, or this"):
        open_place(str(other.path), str(to))
    with pytest.raises(StoreError, match=r"no segment in it, but .* ends at"):
        open_place(str(tmp_path / "wrong"), str(to))
    with pytest.raises(StoreError, match=r"no manifest\.json in it, so it is not an archive"):
        open_place(str(other.path), str(tmp_path))


def test_an_archive_without_its_beginning_is_that_of_its_store_only(tmp_path: Path) -> None:
    growing, to = GrowingStore(tmp_path / "store"), tmp_path / "archive"
    growing.grow(150)
    growing.drop_first_segment()
    archived(growing.path, to)
    shutil.rmtree(growing.path)
    other = GrowingStore(growing.path, seed=7)
    other.grow(12)
    with pytest.raises(StoreError, match=r"the last segment in .* begins at 0: it is the archive"):
        open_place(str(other.path), str(to))


def contents(path: Path) -> dict[Path, bytes]:
    return {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}


def test_a_store_in_the_place_of_the_archive_keeps_its_messages(tmp_path: Path) -> None:
    """With a wrong path, the segments of another store were replaced."""
    growing, other = GrowingStore(tmp_path / "store"), GrowingStore(tmp_path / "other", seed=7)
    growing.grow(60)
    other.grow(70)
    before = contents(other.path)
    with pytest.raises(StoreError, match=r"manifest\.json does not: this is a store"):
        archived(growing.path, other.path)
    for entry in other.path.iterdir():
        if entry.name != "commitlog":
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    with pytest.raises(StoreError, match=r"manifest\.json does not: this is a store"):
        archived(growing.path, other.path)
    assert contents(other.path).items() <= before.items()


def test_an_archive_that_has_lost_its_manifest_keeps_its_segments(tmp_path: Path) -> None:
    """Those that retention had removed from the store were removed here as well."""
    growing, to = GrowingStore(tmp_path / "store"), tmp_path / "archive"
    growing.grow(150)
    archived(growing.path, to)
    growing.drop_first_segment()
    (to / "manifest.json").unlink()
    before = contents(to)
    with pytest.raises(StoreError, match="an archive that has lost its manifest"):
        archived(growing.path, to)
    assert contents(to) == before


def test_a_first_run_that_was_killed_while_it_wrote_the_manifest(tmp_path: Path) -> None:
    growing, to = GrowingStore(tmp_path / "store"), tmp_path / "archive"
    growing.grow(60)
    archived(growing.path, to)
    whole = (to / "manifest.json").read_bytes()
    (to / "manifest.json").unlink()
    (to / "manifest.json.tmp").write_bytes(whole[:50] + bytes(len(whole) - 50))
    assert archived(growing.path, to).segments
    assert (to / "manifest.json").read_bytes().count(b"commitlog/")
    checked(to)


WRONG: dict[str, tuple[str, dict[str, Any]]] = {
    "a path that leads out": ("files", {"path": "../x"}),
    "an object that leads out": ("files", {"object": "a/../../x"}),
    "a very deep path": ("files", {"path": "/".join("a" * 40_000)}),
    "a very long path": ("files", {"path": "a" * 5000}),
    "a very large file": ("files", {"size": 1 << 62}),
    "more stored than there is": ("files", {"size": 1, "stored": 2}),
    "a segment that is not where it says": ("segments", {"start": 5}),
    "a segment of another size": ("segments", {"size": 8192}),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_manifest_that_cannot_be(case: str, tmp_path: Path) -> None:
    growing, to = GrowingStore(tmp_path / "store"), tmp_path / "archive"
    growing.grow(60)
    archived(growing.path, to)
    manifest = json.loads((to / "manifest.json").read_text())
    part, changes = WRONG[case]
    manifest[part][0] |= changes
    (to / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(StoreError, match="the manifest contradicts itself"):
        read_manifest(LocalDirectory(to))


@pytest.mark.parametrize("moment", [1, 2, 3, 5, 8, 13, "before the manifest", "after it"])
def test_two_runs_at_once_do_not_undo_each_other(moment: int | str, tmp_path: Path) -> None:
    """Each object that a manifest names is that of the run which wrote the manifest."""
    growing, to = GrowingStore(tmp_path / "store"), tmp_path / "archive"
    growing.grow(60)

    class Interrupted(LocalTarget):
        puts = 0

        def put(self, path: str, size: int, chunks: Iterable[bytes]) -> None:
            self.puts += 1
            is_manifest = path == "manifest.json" and not (to / "manifest.json").exists()
            if self.puts == moment or (is_manifest and moment == "before the manifest"):
                self._other()
            super().put(path, size, chunks)
            if is_manifest and moment == "after it":
                self._other()

        def _other(self) -> None:
            growing.grow(20)
            archived(growing.path, to)

    refused = pytest.raises(JobError, match="another run writes to this archive")
    with refused if moment in (1, "after it") else suppress(JobError):
        archive(growing.path, Interrupted(to))
    checked(to)
    archived(growing.path, to)
    checked(to)


@pytest.mark.parametrize("change", ["flipped", "shorter", "gone"])
def test_damage_of_an_archive_is_found(change: str, tmp_path: Path) -> None:
    growing, to = GrowingStore(tmp_path / "store"), tmp_path / "archive"
    growing.grow(60)
    archived(growing.path, to)
    segment = min((to / "commitlog").iterdir())
    if change == "flipped":
        data = bytearray(segment.read_bytes())
        data[100] ^= 1
        segment.write_bytes(data)
    elif change == "shorter":
        segment.write_bytes(segment.read_bytes()[:-1])
    else:
        segment.unlink()
    (damage,) = check(LocalDirectory(to), LocalEngine(1)).damage
    assert damage.file == f"commitlog/{segment.name}"
    if change == "shorter":
        with pytest.raises(StoreError, match="but the archive's manifest says"):
            ArchivedDirectory(LocalDirectory(to)).open(f"commitlog/{segment.name}")


class FailingTarget(LocalTarget):
    """A target that refuses one of its operations."""

    def __init__(self, root: Path, left: int) -> None:
        super().__init__(root)
        self._left = left

    def put(self, path: str, size: int, chunks: Iterable[bytes]) -> None:
        super().put(path, size, chunks)
        self._step()  # The object is there, but the answer was lost.

    def remove(self, path: str) -> None:
        self._step()
        super().remove(path)

    def _step(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise StoreError("the target is not reachable")


def objects_of(to: Path) -> set[str]:
    return {path.relative_to(to).as_posix() for path in to.rglob("*") if path.is_file()}


def named(to: Path) -> set[str]:
    manifest = read_manifest(LocalDirectory(to))
    assert manifest is not None
    objects = {file.object for file in manifest.all_files}
    return objects | {*manifest.superseded, "manifest.json"}


def test_the_next_run_removes_what_failed_runs_left(tmp_path: Path) -> None:
    growing, to = GrowingStore(tmp_path / "store"), tmp_path / "archive"
    for _ in range(3):  # The third run removes objects of the first.
        growing.grow(40)
        archived(growing.path, to)
    for left in range(0, 60, 4):
        growing.grow(20)
        with suppress(StoreError):
            archive(growing.path, FailingTarget(to, left))
        shutil.copy(to / "manifest.json", to / "commitlog" / f"{0:020d}.tmp")
        archived(growing.path, to)
        assert objects_of(to) == named(to)
        checked(to)


def test_a_run_keeps_what_another_run_is_preparing(tmp_path: Path) -> None:
    growing, to = GrowingStore(tmp_path / "store"), tmp_path / "archive"
    growing.grow(60)
    end = archived(growing.path, to).max_offset
    manifest = read_manifest(LocalDirectory(to))
    assert manifest is not None
    later = {f"changing/{manifest.generation + 1:010d}-run/checkpoint", f"commitlog/{end:020d}"}
    for name in later:
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        (to / name).write_bytes(b"half")
    archived(growing.path, to)
    assert objects_of(to) == named(to) | later


@pytest.mark.parametrize("has_table", [True, False])
@pytest.mark.parametrize("count", [3, 25, 60])
def test_a_topic_that_was_created_again_replaces_its_queue_files(
    count: int, has_table: bool, tmp_path: Path
) -> None:
    """The archive agrees with the store, however many queue files each incarnation has."""
    log = LogWriter(tmp_path / "store", segment=4096)
    for _ in range(50):
        log.add("A", 0)
    to, sizes = tmp_path / "archive", {"queue_file_size": 200, "hash_slots": 20, "max_index": 80}
    rebuild(log.close(), LocalEngine(1), **sizes)
    archived(log.store, to)
    old = objects_of(to)
    log.forget("A")
    for _ in range(count):
        log.add("A", 0)
    for _ in range(40):
        log.add("B", 0)
    shutil.rmtree(log.store / "consumequeue")
    rebuild(log.close(), LocalEngine(1), **sizes)
    if not has_table:
        (log.store / "config" / "incarnations.json").unlink()
    archived(log.store, to)
    checked(to)
    assert old - {"manifest.json"} <= objects_of(to)
    for place in (open_place(str(to)), open_place(str(log.store), str(to))):
        with StoreReader.open(place) as reader, StoreReader.open(log.store) as live:
            bounds = reader.queue("A", 0)
            assert bounds == live.queue("A", 0)
            assert bounds == QueueRange(0, count)
            found = reader.get("A", 0, 0, max=1000).records
            assert found == live.get("A", 0, 0, max=1000).records
    archived(log.store, to)
    assert objects_of(to) == named(to)


def test_a_file_that_cannot_be_opened_for_a_moment_ends_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    growing, to = GrowingStore(tmp_path / "store"), tmp_path / "archive"
    growing.grow(60)
    names = [file for file in files_of(LocalDirectory(growing.path)) if file[:3] in ("con", "ind")]
    for name in names:
        for method in ("open", "size"):
            real, refused = getattr(LocalDirectory, method), [name]

            def once(here: Any, path: str, real: Any = real, refused: Any = refused) -> Any:
                if path in refused:
                    refused.clear()
                    raise StoreError(f"{path}: Input/output error")
                return real(here, path)

            with monkeypatch.context() as patch:
                patch.setattr(LocalDirectory, method, once)
                with suppress(StoreError):
                    archived(growing.path, to)
                    if not refused:
                        archived_names = files_of(ArchivedDirectory(LocalDirectory(to)))
                        assert name in archived_names
            shutil.rmtree(to, ignore_errors=True)


def test_a_live_store_is_not_opened_in_an_archive(tmp_path: Path) -> None:
    """It would write zeros after the segments, and other derived files."""
    log = LogWriter(tmp_path / "store", segment=4096)
    for _ in range(50):
        log.add("A", 0)
    to = tmp_path / "archive"
    archived(log.close(), to)
    before = {path: path.read_bytes() for path in to.rglob("*") if path.is_file()}
    with pytest.raises(StoreError, match="this directory is an archive"):
        BlockingMessageStore.open(to)
    left = {path: path.read_bytes() for path in to.rglob("*") if path.is_file()}
    assert {path: left.get(path) for path in before} == before
