"""A directory of Parquet files as it was at one moment.

`follow` replaces `_mqlake/state.json` atomically, and publishes files after that. So if the state
is the same before and after the directory is listed, the listed and the waiting files belong to one
moment.
"""

# pyright: basic
# pyarrow has no types.

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
from pyarrow import parquet

from mqlake.errors import JobError
from mqlake.lake.files.partition_paths import path_of
from mqlake.lake.options import STATE
from mqlake.lake.tables.committed_end import CommittedEnd
from mqlake.lake.tables.parquet_table import PARTITION, ParquetTableState
from mqlake.lake.union.lake import LakeFile
from mqlake.lake.union.pruning import wanted_files
from mqlake.query.reading.conditions import Selection

_MOST_LOOKS = 100


class ParquetLake:
    """See `lake.Lake`."""

    def __init__(self, root: Path) -> None:
        self.root = str(root)
        self._state, self._files = _one_moment(root)

    @property
    def columns(self) -> Sequence[str]:
        if not self._state.columns:
            return PARTITION
        schema = parquet.read_schema(Path(self.root, STATE, self._state.columns))
        return [*PARTITION, *schema.names]

    def last_batch(self, follower: str) -> int:
        return self._state.batches.get(follower, -1)

    def end(self, follower: str) -> CommittedEnd | None:
        return self._state.ends.get(follower)

    def files(self, selection: Selection) -> list[LakeFile]:
        found = wanted_files(self._files, selection)
        names = ("path", "size", "topic", "later")
        columns = (found.column(name).to_pylist() for name in names)
        return [
            LakeFile(path, size, topic, None, later)
            for path, size, topic, later in zip(*columns, strict=True)
        ]

    def has_topic(self, topic: str) -> bool:
        return topic in self._files.column("topic").to_pylist()


def _one_moment(root: Path) -> tuple[ParquetTableState, Any]:
    before = _state_text(root)
    for _ in range(_MOST_LOOKS):
        state = msgspec.json.decode(before, type=ParquetTableState)
        shown = root.glob("topic=*/day=*/*.parquet")
        files = {path.name: _shown(state, path) for path in shown}
        after = _state_text(root)
        if after == before:
            return state, _table(files | _waiting(root, state) | _moving(state, files))
        before = after
    raise JobError(f"{root}: the table changes too often to be read: run the query again")


def _state_text(root: Path) -> bytes:
    return (root / STATE / "state.json").read_bytes()


def _shown(state: ParquetTableState, path: Path) -> dict[str, Any]:
    return _row(str(path), path.stat().st_size, *state.partition_of(path), None)


def _waiting(root: Path, state: ParquetTableState) -> dict[str, dict[str, Any]]:
    """Return the files that readers of the directory do not see yet; such a file moves later."""
    found: dict[str, dict[str, Any]] = {}
    for one in state.staged:
        file, name = one.file, Path(one.file.path).name
        later = root.joinpath(*path_of(file.topic, file.day, is_hive=True), name)
        found[name] = _row(file.path, file.size, file.topic, file.day, str(later))
    return found


def _moving(
    state: ParquetTableState, shown: dict[str, dict[str, Any]]
) -> dict[str, dict[str, Any]]:
    """Return the files that are being moved to their final paths, and are not listed there yet."""
    found: dict[str, dict[str, Any]] = {}
    for old, new in state.moving:
        if Path(new).name not in shown:
            partition = state.partition_of(Path(new))
            found[Path(new).name] = _row(old, _size(old, new), *partition, new)
    return found


def _size(*paths: str) -> int:
    """Return the size of a file that is at one of these paths, and may move along them at any
    time.
    """
    for path in paths:
        try:
            return Path(path).stat().st_size
        except FileNotFoundError:
            continue
    raise JobError(f"{paths[0]}: the file is missing")


def _row(path: str, size: int, topic: str, day: str, later: str | None) -> dict[str, Any]:
    fields = {"path": path, "size": size, "topic": topic, "later": later}
    return {**fields, "day": date.fromisoformat(day)}


def _table(files: dict[str, dict[str, Any]]) -> Any:
    fields = {"path": pa.string(), "size": pa.int64(), "topic": pa.string(), "later": pa.string()}
    schema = pa.schema([*fields.items(), ("day", pa.date32())])
    return pa.Table.from_pylist([files[name] for name in sorted(files)], schema=schema)
