"""Move dead letters into the table once it accepts them, each exactly once.

A replay is recorded in the checkpoint before it begins, with its number and its files of dead
letters. The table and the table of dead letters then each get their changes, with that number,
atomically. So a replay that is killed is completed by the next one.
"""

# pyright: basic
# Reason: pyarrow carries no types.

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import msgspec
import pyarrow as pa

from mqlake.errors import JobError
from mqlake.lake.files.data_file import DataFile
from mqlake.lake.files.lake_files import LakeFiles
from mqlake.lake.files.letters import COLUMNS, NO_TOPIC, REFUSED, messages
from mqlake.lake.files.partition_writer import FileShape, Shapes, write_all
from mqlake.lake.files.topic_shapes import TopicShapes
from mqlake.lake.follow.dead_letters import options_of
from mqlake.lake.followers.identity import held
from mqlake.lake.followers.kept_choices import is_plain
from mqlake.lake.options import NEEDED, FollowOptions
from mqlake.lake.tables.evolution import table_schema
from mqlake.lake.tables.opening import open_table, table_exists
from mqlake.lake.tables.table import LakeTable
from mqlake.storage.durable import replace_file
from mqlake.storage.local_owned import LocalOwnedDirectory

JOURNAL = "mqlake-replay.json"

_OF_A_LETTER = ["kind", "queueOffset", "physicalOffset", "raw"]


class ReplayReport(msgspec.Struct, frozen=True, rename="camel"):
    """The result of a replay.

    Attributes:
        messages: rows that were added to the table.
        left: remaining dead letters: bytes that are still not a record.
    """

    output: str
    messages: int
    left: int


class LetterReplay(msgspec.Struct, frozen=True):
    """A replay that has begun: its number, and its files of dead letters."""

    number: int
    files: list[DataFile]


class Decoder(Protocol):
    """Decodes bodies, if their fields are columns of the table."""

    @property
    def options(self) -> FollowOptions:
        """The options, with the columns of bodies."""
        ...

    @property
    def needed(self) -> tuple[str, ...]:
        """The columns of messages that are needed to decode them."""
        ...

    def decoded(self, rows: pa.Table) -> pa.Table:
        """Return messages with the columns of their bodies."""
        ...


@dataclass(frozen=True)
class NoBodies:
    """Decodes nothing: the table has no columns of bodies."""

    options: FollowOptions
    needed: tuple[str, ...] = ()

    def decoded(self, rows: pa.Table) -> pa.Table:
        """Return messages as they are."""
        return rows


def replay_letters(
    options: FollowOptions, decode: Callable[[FollowOptions], Decoder]
) -> ReplayReport:
    """Move the valid messages among the dead letters into the table.

    Args:
        decode: returns what decodes bodies.

    Raises:
        JobError: the checkpoint is in use, or the table still refuses rows.
    """
    if options.upsert_by is not None:
        raise JobError(
            "dead letters of a table with --upsert-by are not replayed, as newer messages of their "
            "keys may be in it: follow the store into a new table"
        )
    own = options_of(options)
    decoder = decode(options)
    with held(options) as identity:
        options = decoder.options
        if not table_exists(own):
            return ReplayReport(options.place, 0, 0)
        follower = f"{identity.id}-replay"
        table, letters = open_table(options), open_table(own)
        begun = _begun(options)
        if begun is None or letters.last_batch(follower) >= begun.number:
            begun = LetterReplay(letters.last_batch(follower) + 1, letters.files())
            _note(options, begun)
        decompress = is_plain(identity.source)
        return _take(decoder, begun, follower, table, letters, decompress=decompress)


def _take(
    decoder: Decoder,
    begun: LetterReplay,
    follower: str,
    table: LakeTable,
    letters: LakeTable,
    *,
    decompress: bool,
) -> ReplayReport:
    options = decoder.options
    shape = table.shape(follower, begun.number)
    _refuse_checks(options, shape)
    needed = dict.fromkeys((*options.columns, *NEEDED, *decoder.needed))
    schema = table_schema(tuple(needed))
    rest: list[pa.RecordBatch] = []
    taken = 0

    def good() -> Iterator[pa.RecordBatch]:
        nonlocal taken
        for batch in _rows(decoder.options.files, begun.files):
            kept: list[int] = []
            rows: list[pa.Table] = []
            for number, row in enumerate(batch.select(_OF_A_LETTER).to_pylist()):
                found = messages(
                    row["raw"] or b"",
                    row["physicalOffset"],
                    schema,
                    decompress=decompress,
                    queue_offset=row["queueOffset"] if row["kind"] == REFUSED else None,
                )
                taken += found.num_rows
                rows.append(found)
                if not found.num_rows:
                    kept.append(number)
            yield from decoder.decoded(pa.concat_tables(rows)).to_batches()
            rest.append(batch.take(pa.array(kept, pa.int64())))

    files = write_all(shape, good())
    if table.last_batch(follower) < begun.number:
        table.commit(follower, begun.number, files)
    left = [batch for batch in rest if batch.num_rows]
    remaining = write_all(letters.shape(follower, begun.number), left)
    letters.commit(follower, begun.number, remaining, begun.files)
    return ReplayReport(options.place, taken, sum(batch.num_rows for batch in left))


def _refuse_checks(options: FollowOptions, shapes: Shapes) -> None:
    """Raise if rows would have to be checked, which only Spark can do."""
    known = shapes.known.values() if isinstance(shapes, TopicShapes) else (shapes,)
    found = [
        shape.checks.reason for shape in known if isinstance(shape, FileShape) and shape.checks
    ]
    if found:
        raise JobError(
            f"{options.place}: dead letters are replayed into tables without rules for rows only: "
            f"drop them first ({found[0]})"
        )


def _rows(lake: LakeFiles, files: list[DataFile]) -> Iterator[pa.RecordBatch]:
    """Yield the dead letters of files, with the columns in their directories' names."""
    schema = table_schema(COLUMNS)
    for file in files:
        with lake.parquet(file.path) as opened:
            for batch in opened.iter_batches(1000):
                lacking = {*schema.names} - {*batch.schema.names, "topic"}
                if lacking:
                    raise JobError(f"{file.path}: lacks the columns {', '.join(sorted(lacking))}")
                topic = pa.repeat(pa.scalar(file.topic or NO_TOPIC, pa.string()), batch.num_rows)
                there = set(batch.schema.names)
                columns = [
                    batch.column(field.name).cast(field.type) if field.name in there else topic
                    for field in schema
                ]
                yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _begun(options: FollowOptions) -> LetterReplay | None:
    path = options.checkpoint / JOURNAL
    try:
        return msgspec.json.decode(path.read_bytes(), type=LetterReplay)
    except FileNotFoundError:
        return None
    except msgspec.MsgspecError as error:
        raise JobError(f"{path}: damaged: {error}") from None


def _note(options: FollowOptions, begun: LetterReplay) -> None:
    directory = LocalOwnedDirectory.make(options.checkpoint)
    replace_file(directory, JOURNAL, msgspec.json.encode(begun) + b"\n")
