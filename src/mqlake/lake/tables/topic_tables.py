"""A table for each topic, below one directory: one query fills them all.

A batch is committed to one table after another. Each table records which batches it has, so a
repeated batch goes to the tables that lack it. `_mqlake/batches.json` names the newest batch that
all of them have.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from mqlake.errors import JobError
from mqlake.lake.files.compaction import Merge, Merged
from mqlake.lake.files.data_file import DataFile
from mqlake.lake.files.partition_writer import FileShape
from mqlake.lake.files.topic_shapes import TopicShapes, directory_name, topic_of
from mqlake.lake.followers.follower_notes import FOLLOWERS, put_note
from mqlake.lake.followers.identity import Follower, followers_of, note_follower
from mqlake.lake.options import STATE, FollowOptions, Format
from mqlake.lake.tables.committed_end import CommittedEnd
from mqlake.lake.tables.evolution import SchemaConflictError, wanted_schema
from mqlake.lake.tables.table import LakeTable, stem_of
from mqlake.storage.durable import replace_file
from mqlake.storage.local_owned import LocalOwnedDirectory

NOTE = "batches.json"
TOPIC = "topic.json"
"""In the state directory of a table whose directory has a shortened name."""

Open = Callable[[FollowOptions], LakeTable]


class TopicTables:
    """See `table.LakeTable`.

    Args:
        open_one: opens the table of one topic, and creates it if it is missing.
    """

    def __init__(self, options: FollowOptions, open_one: Open) -> None:
        if options.format is Format.PARQUET or "assign" in options.source:
            raise JobError(
                "a table for each topic: only in Delta Lake and Iceberg, and without option assign"
            )
        self._options, self._open_one = options, open_one
        self._tables: dict[str, LakeTable] = {}
        self._merging: dict[str, str] = {}
        places = [path.parent.parent for path in options.out.glob(f"*/{STATE}/{FOLLOWERS}")]
        for place in sorted(places):
            topic = topic_of(place.name) or _noted_topic(place)
            if topic is not None:
                self._table(topic)

    def last_batch(self, follower: str) -> int:
        return self._noted().get(follower, -1)

    def shape(self, follower: str, batch: int) -> TopicShapes:
        """Return the forms of files by topic; rows of refused topics become dead letters."""
        known: dict[str, FileShape] = {}
        refused: dict[str, str] = {}
        for topic, table in self._tables.items():
            try:
                known[topic] = table.shape(follower, batch).of(topic)
            except SchemaConflictError as error:
                refused[topic] = str(error)
        below = "data" if self._options.format is Format.ICEBERG else ""
        return TopicShapes(self._new(follower, batch), known, refused, below)

    def _new(self, follower: str, batch: int) -> FileShape:
        """Return the form of the first files of a table."""
        schema: Any = wanted_schema(self._options)
        if self._options.format is Format.DELTA:
            for name in self._options.partition_by:
                if name in schema.names:
                    schema = schema.remove(schema.get_field_index(name))
        target = self._options.target_file_size
        stem, files = stem_of(follower, batch), self._options.files
        return FileShape(self._options.place, schema, False, stem, target, files)

    def commit(
        self,
        follower: str,
        batch: int,
        files: Sequence[DataFile],
        removed: Sequence[DataFile] = (),
        end: CommittedEnd | None = None,
    ) -> None:
        by_topic, gone = _by_topic(files), _by_topic(removed)
        for topic in {**by_topic, **gone}:
            table = self._table(topic)
            if batch > table.last_batch(follower):
                own = by_topic.get(topic, [])
                table.commit(follower, batch, own, gone.get(topic, []), end)
        noted = self._noted() | {follower: batch}
        state = LocalOwnedDirectory.make(self._options.out / STATE)
        replace_file(state, NOTE, msgspec.json.encode(noted))

    def expire(self, keep: float) -> None:
        for table in self._tables.values():
            table.expire(keep)

    def files(self) -> list[DataFile]:
        return [file for table in self._tables.values() for file in table.files()]

    def has_other_files(self) -> bool:
        return any(table.has_other_files() for table in self._tables.values())

    def scan(self, columns: Sequence[str]) -> Iterator[Any]:
        for table in self._tables.values():
            yield from table.scan(columns)

    def column_names(self) -> list[str]:
        """Return the columns that all tables have."""
        names = list(self._options.columns)
        for table in self._tables.values():
            there = set(table.column_names())
            names = [name for name in names if name in there]
        return names

    def merges(self, *, is_last: bool) -> list[Merge]:
        jobs: list[Merge] = []
        self._merging = {}
        for topic, table in self._tables.items():
            for job in table.merges(is_last=is_last):
                self._merging[job.inputs[0].path] = topic
                jobs.append(job)
        return jobs

    def replace(self, merged: Sequence[Merged]) -> None:
        by_topic: dict[str, list[Merged]] = {}
        for one in merged:
            topic = self._merging[one.inputs[0].path]
            by_topic.setdefault(topic, []).append(one)
        for topic, own in by_topic.items():
            self._table(topic).replace(own)

    def _table(self, topic: str) -> LakeTable:
        if topic not in self._tables:
            name, url = directory_name(topic), self._options.url
            out = self._options.out / name
            if topic_of(out.name) is None:
                state = LocalOwnedDirectory.make(out / STATE)
                replace_file(state, TOPIC, msgspec.json.encode(topic))
            options = msgspec.structs.replace(
                self._options, out=out, url=url and f"{url}/{name}", is_per_topic=False
            )
            for id_, known in followers_of(str(self._options.out)).items():
                note_follower(out, id_, _of_topic(known, topic))
                put_note(options, id_)
            self._tables[topic] = self._open_one(options)
        return self._tables[topic]

    def _noted(self) -> dict[str, int]:
        path: Path = self._options.out / STATE / NOTE
        try:
            return msgspec.json.decode(path.read_bytes(), type=dict[str, int])
        except FileNotFoundError:
            return {}
        except msgspec.MsgspecError as error:
            raise JobError(f"{path}: damaged: {error}") from None


def _noted_topic(place: Path) -> str | None:
    """Return the topic of a table whose directory has a shortened name; None for other tables."""
    path = place / STATE / TOPIC
    try:
        topic = msgspec.json.decode(path.read_bytes(), type=str)
    except FileNotFoundError:
        return None
    except msgspec.MsgspecError as error:
        raise JobError(f"{path}: damaged: {error}") from None
    return topic if directory_name(topic) == place.name else None


def _by_topic(files: Sequence[DataFile]) -> dict[str, list[DataFile]]:
    found: dict[str, list[DataFile]] = {}
    for file in files:
        found.setdefault(file.topic, []).append(file)
    return found


def _of_topic(follower: Follower, topic: str) -> Follower:
    """Return what the table of one topic follows."""
    if follower.source is None:
        return follower
    source = {
        name: text for name, text in follower.source.items() if not name.startswith("subscribe")
    }
    source["subscribePattern"] = re.escape(topic)
    return msgspec.structs.replace(follower, source=source)
