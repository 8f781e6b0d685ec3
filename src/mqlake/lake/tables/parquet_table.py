"""A directory of plain Parquet files that anybody may list and read at any time.

A reader that lists the directory sees a file or does not, and nothing tells it which files belong
together. So once a file is visible, it is complete and committed, and is never changed, moved or
removed. Small files are merged before: a batch's files wait below `_mqlake/`, where no reader
looks, until a partition has enough of them, or until they have waited for `publish_after` seconds,
or until `follow` ends.

`_mqlake/state.json` is the table's log: it is replaced atomically, by a rename.
"""

# pyright: basic
# Reason: pyarrow carries no types.

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import msgspec
import pyarrow as pa
from pyarrow import parquet

from mqlake.errors import JobError
from mqlake.lake.files.compaction import Merge, Merged
from mqlake.lake.files.data_file import DataFile
from mqlake.lake.files.lake_files import sync_directory
from mqlake.lake.files.partition_paths import path_of
from mqlake.lake.files.partition_writer import FileShape
from mqlake.lake.options import PARTITIONS, STATE, FollowOptions
from mqlake.lake.tables.committed_end import CommittedEnd
from mqlake.lake.tables.evolution import fit, wanted_schema
from mqlake.lake.tables.table import stem_of
from mqlake.storage.clock import SystemClock
from mqlake.storage.durable import replace_file
from mqlake.storage.local_owned import LocalOwnedDirectory

PARTITION = PARTITIONS
LINGER = 3600.0
"""Seconds for which files that waited stay readable after their rows are in other files."""


class WaitingFile(msgspec.Struct, frozen=True):
    """A committed file that waits, and since when (seconds since 1970)."""

    file: DataFile
    since: float


class ParquetTableState(msgspec.Struct, rename="camel"):
    """The content of the table's log.

    Attributes:
        columns: file below `_mqlake/` that has all columns that were ever written, and no row.
        batches: newest batch of each follower.
        ends: where that batch ends in the log.
        staged: files that wait.
        replaced: files whose rows are in others now, and since when. They stay for `LINGER` seconds
            for readers that planned to read them.
        moving: files on their way to their places: old name, new name.
        removing: files whose rows a commit removed.
        topics: topics whose names are too long for a directory, by the names of their directories.
    """

    columns: str = ""
    batches: dict[str, int] = {}
    ends: dict[str, CommittedEnd] = {}
    staged: list[WaitingFile] = []
    replaced: list[WaitingFile] = []
    moving: list[tuple[str, str]] = []
    removing: list[str] = []
    topics: dict[str, str] = {}

    def partition_of(self, path: Path) -> tuple[str, str]:
        """Return the topic and the day of a file at its place."""
        name, day = path.parts[-3:-1]
        topic = self.topics.get(name) or unquote(name.partition("=")[2])
        return topic, unquote(day.partition("=")[2])


class ParquetTable:
    """See `table.LakeTable`. Only one follower at a time may use it."""

    def __init__(self, options: FollowOptions) -> None:
        if options.partition_by != PARTITION:
            raise JobError(f"{options.out}: a Parquet table is partitioned by topic and day")
        self._root, self._target = options.out, options.target_file_size
        self._wait = options.publish_after
        self._wanted = wanted_schema(options)
        self._state_file = self._root / STATE / "state.json"
        self._staging = self._root / STATE / "staged"
        self._merged = self._root / STATE / "merged"
        for path in (self._staging, self._merged):
            path.mkdir(parents=True, exist_ok=True)
        self._state = self._load()
        self._finish_moving()
        self._finish_removing()
        self._remove_replaced()
        self._remove_remains()

    def _load(self) -> ParquetTableState:
        try:
            return msgspec.json.decode(self._state_file.read_bytes(), type=ParquetTableState)
        except FileNotFoundError:
            pass
        except msgspec.MsgspecError as error:
            raise JobError(f"{self._state_file}: damaged: {error}") from None
        if any(not path.name.startswith(("_", ".")) for path in self._root.iterdir()):
            raise JobError(f"{self._root}: the directory is not empty, and not a table of mqlake")
        return ParquetTableState()

    def _save(self) -> None:
        directory = LocalOwnedDirectory(self._state_file.parent)
        replace_file(directory, self._state_file.name, msgspec.json.encode(self._state))

    def _remove_remains(self) -> None:
        """Remove files that no commit names, from attempts that were killed."""
        kept = {one.file.path for one in (*self._state.staged, *self._state.replaced)}
        for directory in (self._staging, self._merged):
            for path in directory.rglob("*.parquet"):
                if str(path) not in kept:
                    path.unlink()

    def last_batch(self, follower: str) -> int:
        return self._state.batches.get(follower, -1)

    def shape(self, follower: str, batch: int) -> FileShape:
        wanted = pa.schema([field for field in self._wanted if field.name not in PARTITION])
        there = pa.schema([])
        if self._state.columns:
            there = parquet.read_schema(self._root / STATE / self._state.columns)
        schema, missing = fit(there, wanted, str(self._root))
        if missing:
            self._write_columns(pa.schema([*there, *missing]))
        return FileShape(str(self._staging), schema, True, stem_of(follower, batch), self._target)

    def _write_columns(self, schema: pa.Schema) -> None:
        name = f"columns-{uuid.uuid4().hex}"
        parquet.write_metadata(schema, self._root / STATE / name)
        self._state.columns = name
        self._save()

    def commit(
        self,
        follower: str,
        batch: int,
        files: Sequence[DataFile],
        removed: Sequence[DataFile] = (),
        end: CommittedEnd | None = None,
    ) -> None:
        now = _now()
        for file in files:
            name, _ = path_of(file.topic, file.day, is_hive=True)
            if unquote(name) != f"topic={file.topic}":
                self._state.topics[name] = file.topic
        gone = {file.path for file in removed}
        self._state.staged = [one for one in self._state.staged if one.file.path not in gone]
        self._state.staged += [WaitingFile(file, now) for file in files]
        self._state.removing += sorted(gone)
        self._state.batches[follower] = batch
        if end is not None:
            self._state.ends[follower] = end
        self._save()
        self._finish_removing()

    def expire(self, keep: float) -> None:
        """Do nothing: there are no versions."""

    def files(self) -> list[DataFile]:
        shown = self._root.glob("topic=*/day=*/*.parquet")
        waiting = [one.file for one in self._state.staged]
        return waiting + [self._shown_file(path) for path in sorted(shown)]

    def _shown_file(self, path: Path) -> DataFile:
        topic, day = self._state.partition_of(path)
        rows = parquet.read_metadata(path).num_rows
        return DataFile(str(path), topic, day, rows, path.stat().st_size)

    def has_other_files(self) -> bool:
        return False

    def scan(self, columns: Sequence[str]) -> Iterator[Any]:
        for file in self.files():
            inside = parquet.read_schema(file.path)
            topic = pa.scalar(file.topic, pa.string())
            with parquet.ParquetFile(file.path) as opened:
                for batch in opened.iter_batches(columns=[n for n in columns if n in inside.names]):
                    yield pa.RecordBatch.from_arrays(
                        [
                            pa.repeat(topic, batch.num_rows)
                            if name == "topic"
                            else batch.column(name)
                            if name in inside.names
                            else pa.nulls(batch.num_rows)
                            for name in columns
                        ],
                        names=list(columns),
                    )

    def column_names(self) -> list[str]:
        if not self._state.columns:
            return list(PARTITION)
        return [*PARTITION, *parquet.read_schema(self._root / STATE / self._state.columns).names]

    def merges(self, *, is_last: bool) -> list[Merge]:
        partitions: dict[tuple[str, str], list[WaitingFile]] = {}
        for staged in self._state.staged:
            partitions.setdefault((staged.file.topic, staged.file.day), []).append(staged)
        old = _now() - self._wait
        return [
            Merge(tuple(staged.file for staged in found), str(self._merged))
            for found in partitions.values()
            if is_last
            or sum(staged.file.size for staged in found) >= self._target
            or min(staged.since for staged in found) <= old
        ]

    def replace(self, merged: Sequence[Merged]) -> None:
        """Publish: each merged file appears atomically at its place."""
        if not merged:
            return
        gone = {file.path for one in merged for file in one.inputs}
        now = _now()
        for one in merged:
            for file in one.outputs:
                directory = self._root.joinpath(*path_of(file.topic, file.day, is_hive=True))
                self._state.moving.append((file.path, str(directory / Path(file.path).name)))
        moved = {old for old, _ in self._state.moving}
        waited = [one.file for one in self._state.staged if one.file.path in gone - moved]
        self._state.replaced += [WaitingFile(file, now) for file in waited]
        self._state.staged = [one for one in self._state.staged if one.file.path not in gone]
        self._save()
        self._finish_moving()
        self._remove_replaced()

    def _remove_replaced(self) -> None:
        """Remove files whose rows have been in other files for `LINGER` seconds."""
        last = _now() - LINGER
        for one in self._state.replaced:
            if one.since <= last:
                Path(one.file.path).unlink(missing_ok=True)
        self._state.replaced = [one for one in self._state.replaced if one.since > last]

    def _finish_removing(self) -> None:
        """Remove files whose rows a commit removed; the next `_save` forgets them."""
        for path in self._state.removing:
            Path(path).unlink(missing_ok=True)
        self._state.removing = []

    def _finish_moving(self) -> None:
        if not self._state.moving:
            return
        for old, new in self._state.moving:
            Path(new).parent.mkdir(parents=True, exist_ok=True)
            if Path(old).exists():
                Path(old).replace(new)
            sync_directory(Path(new).parent)
        self._state.moving = []
        self._save()


def _now() -> float:
    return SystemClock().milliseconds() / 1000
