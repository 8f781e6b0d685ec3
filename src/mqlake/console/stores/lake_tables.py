"""The lake tables that `mqlake follow` writes: how far each is, its commits, its dead letters."""

# pyright: basic
# pyarrow has no types.

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from mqlake.errors import MqlakeError, StoreError
from mqlake.lake.files.lake_files import LakeFiles, is_url
from mqlake.lake.follow.dead_letters import SUFFIX
from mqlake.lake.followers.identity import Follower, followers_of
from mqlake.lake.options import STATE
from mqlake.lake.union.lake import Lake, LakeFile
from mqlake.lake.union.opening import open_lake
from mqlake.storage.local import LocalDirectory
from mqlake.storage.shown_url import shown_url
from mqlake.store.reader import StoreReader

MOST_LETTERS = 50
"""Dead letters that are listed."""
_MOST_FILES = 200
"""Files of dead letters that are read."""


class FollowedLog(msgspec.Struct, frozen=True, rename="camel"):
    """A store that a table follows.

    Attributes:
        end: physical offset up to which the log is in the table; None if it is not recorded.
        log_end: where the log ends; None if the store cannot be read here.
        last_batch: number of the newest commit, -1 without one.
        committed: when that was (ms); None if the checkpoint cannot be read here.
        problem: why this is not known; None if it is.
    """

    store: str
    checkpoint: str
    end: int | None
    log_end: int | None
    last_batch: int
    committed: int | None
    upsert_by: str | None
    problem: str | None = None

    @property
    def lag(self) -> int | None:
        """Bytes of the log that are not in the table yet."""
        if self.end is None or self.log_end is None:
            return None
        return max(0, self.log_end - self.end)


class DeadLetter(msgspec.Struct, frozen=True, rename="camel"):
    """A damaged stretch of the log, or a message that the table refused."""

    topic: str | None
    queue_id: int | None
    queue_offset: int | None
    store_timestamp: int | None
    physical_offset: int | None
    length: int | None
    kind: str | None
    reason: str | None


class LakeTableFacts(msgspec.Struct, frozen=True, rename="camel"):
    """A lake table.

    Attributes:
        files, length: how many data files it has, and their bytes.
        letters: the first of its dead letters; `letter_files` have all of them.
        is_cut: whether there are more dead letters than those listed.
        problem: why the table cannot be read; None if it can.
    """

    table: str
    format: str = ""
    files: int = 0
    length: int = msgspec.field(name="bytes", default=0)
    logs: list[FollowedLog] = []
    letters: list[DeadLetter] = []
    letter_files: int = 0
    is_cut: bool = False
    problem: str | None = None


def lake_table_facts(table: str, stores: tuple[Path, ...]) -> LakeTableFacts:
    """Return what a lake table and the notes in it show; an unreadable table has a `problem`.

    Args:
        stores: the store directories that may be opened, whatever the notes name.
    """
    shown = shown_url(table)
    try:
        return _facts(table, shown, stores)
    except (MqlakeError, OSError) as error:
        return LakeTableFacts(table=shown, problem=str(error))


def _facts(table: str, shown: str, stores: tuple[Path, ...]) -> LakeTableFacts:
    files = LakeFiles()
    lake = open_lake(table, None, "default", files)
    data = lake.files(())
    letters, letter_files, is_cut = _dead_letters(table, _format(lake), files)
    return LakeTableFacts(
        table=shown,
        format=_format(lake),
        files=len(data),
        length=sum(file.size for file in data),
        logs=[_log(lake, id_, one, stores) for id_, one in followers_of(lake.root, files).items()],
        letters=letters,
        letter_files=letter_files,
        is_cut=is_cut,
    )


def _format(lake: Lake) -> str:
    return type(lake).__name__.removesuffix("Lake")


def _log(lake: Lake, id_: str, one: Follower, stores: tuple[Path, ...]) -> FollowedLog:
    end = lake.end(id_)
    log_end, problem = None, None
    try:
        if Path(one.store) not in {path.resolve() for path in stores}:
            raise StoreError("the console was not started with --store for this directory")
        log_end = _log_end(one.store)
    except MqlakeError as error:
        problem = str(error)
    batch = lake.last_batch(id_)
    return FollowedLog(
        store=one.store,
        checkpoint=one.checkpoint,
        end=None if end is None else end.physical_offset,
        log_end=log_end,
        last_batch=batch,
        committed=_committed(Path(one.checkpoint), batch),
        upsert_by=one.upsert_by,
        problem=problem,
    )


def _log_end(store: str) -> int:
    with StoreReader.open(LocalDirectory(store)) as reader:
        return reader.max_offset


def _committed(checkpoint: Path, batch: int) -> int | None:
    """Return when Spark noted a batch as done (ms)."""
    try:
        return int((checkpoint / "commits" / str(batch)).stat().st_mtime * 1000)
    except OSError:
        return None


def _dead_letters(table: str, format_: str, files: LakeFiles) -> tuple[list[DeadLetter], int, bool]:
    place = table.removeprefix("file://").rstrip("/") + SUFFIX
    if not is_url(place) and not Path(place).is_dir():
        return [], 0, False
    try:
        lake = _open_letters(place, format_, files)
    except MqlakeError:
        if is_url(place):
            return [], 0, False  # Without a dead letter, the table does not exist.
        raise
    found = lake.files(())
    newest = heapq.nlargest(_MOST_FILES, found, key=lambda file: file.path)
    letters = []
    for letter in _letters(newest, files):
        if len(letters) == MOST_LETTERS:
            return letters, len(found), True
        letters.append(letter)
    return letters, len(found), len(found) > len(newest)


def _open_letters(place: str, format_: str, files: LakeFiles) -> Lake:
    """Open the table of the dead letters of a table; that of an Iceberg table is in its catalog."""
    if format_ != "Iceberg":
        return open_lake(place, None, "default", files)
    from mqlake.lake.tables.iceberg_catalog import NAMESPACE

    path = Path(place).absolute()
    catalog = path.with_name(path.name.removesuffix(SUFFIX)) / STATE / "catalog.db"
    return open_lake(f"{NAMESPACE}.{path.name}", f"sqlite:///{catalog}", "default", files)


def _letters(newest: list[LakeFile], files: LakeFiles) -> Iterator[DeadLetter]:
    from mqlake.lake.files.letters import COLUMNS
    from mqlake.lake.tables.evolution import table_schema
    from mqlake.lake.union.read import LakeTask, read

    # The raw record is not shown.
    schema = table_schema(tuple(name for name in COLUMNS if name != "raw"))
    for given in newest:
        # Field ids are known of the columns of messages alone; `follow` named all in the file.
        file = replace(given, ids=None)
        for batch in read(LakeTask((file,), (), decompress=False, lake=files), schema):
            for row in batch.to_pylist():
                yield _letter(row)


def _letter(row: dict[str, Any]) -> DeadLetter:
    stored = row.get("storeTimestamp")
    return DeadLetter(
        topic=row.get("topic"),
        queue_id=row.get("queueId"),
        queue_offset=row.get("queueOffset"),
        store_timestamp=None if stored is None else int(stored.timestamp() * 1000),
        physical_offset=row.get("physicalOffset"),
        length=row.get("length"),
        kind=row.get("kind"),
        reason=row.get("reason"),
    )
