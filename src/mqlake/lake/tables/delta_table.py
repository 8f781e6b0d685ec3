"""A Delta Lake table, committed to through delta-rs.

A batch is one version of the table: its files, and `txn` actions with the follower, the batch's
number and its end in the log. If two commits have the same `txn` follower, Delta Lake accepts only
one of them.
"""

# pyright: basic
# Reason: pyarrow carries no types.

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from posixpath import basename
from typing import Any
from urllib.parse import unquote

import msgspec
import pyarrow as pa

from mqlake.errors import JobError
from mqlake.lake.files.compaction import Merge, Merged, small_files, utc_day
from mqlake.lake.files.data_file import DataFile
from mqlake.lake.files.partition_writer import FileShape
from mqlake.lake.files.row_checks import RowChecks
from mqlake.lake.options import FollowOptions
from mqlake.lake.tables.committed_end import CommittedEnd
from mqlake.lake.tables.conflicts import CommitConflictError, tell_conflict
from mqlake.lake.tables.delta_demands import check_protocol, check_replacing, row_checks
from mqlake.lake.tables.evolution import UnwritableTableError, fit, wanted_schema
from mqlake.lake.tables.lake_options import delta_options
from mqlake.lake.tables.table import PREFIX, stem_of
from mqlake.storage.clock import SystemClock

try:
    from deltalake import DeltaTable, Field, QueryBuilder
    from deltalake.exceptions import CommitFailedError, DeltaError, DeltaProtocolError
    from deltalake.transaction import AddAction, CommitProperties, RemoveAction, Transaction
except ImportError:
    raise JobError("deltalake is not installed: pip install 'mqlake[delta]'") from None

FAILURES = (DeltaError, OSError)
"""What delta-rs raises; an `OSError` if the object store refuses a request."""

_COLOR = re.compile(r"\x1b\[[0-9;]*m")

DAY = pa.field("day", pa.date32())


class DeltaLakeTable:
    """See `table.LakeTable`."""

    def __init__(self, options: FollowOptions) -> None:
        self._root, self._target = options.place, options.target_file_size
        self._lake = options.files
        storage = delta_options(options.url, options.storage) if options.url else None
        self._parts = list(options.partition_by)
        self._wanted = wanted_schema(options)
        self._replaces = options.upsert_by is not None
        try:
            if not DeltaTable.is_deltatable(self._root, storage):
                options.out.mkdir(parents=True, exist_ok=True)
                schema = self._wanted.append(DAY) if DAY.name in self._parts else self._wanted
                DeltaTable.create(
                    self._root, schema, "ignore", self._parts, storage_options=storage
                )
            self._table = DeltaTable(self._root, storage_options=storage)
        except FAILURES as error:
            raise failure(self._root, error) from None
        there = self._table.metadata().partition_columns
        if there != self._parts:
            raise JobError(
                f"{self._root}: this table is partitioned by {','.join(there) or 'none'}: give "
                "that as --partition-by"
            )

    def last_batch(self, follower: str) -> int:
        self._table.update_incremental()
        found = self._table.transaction_version(application(follower))
        return -1 if found is None else found

    def shape(self, follower: str, batch: int) -> FileShape:
        self._table.update_incremental()
        check_protocol(self._table, self._root)
        if self._replaces:
            check_replacing(self._table, self._root)
        there = pa.schema(self._table.schema())
        there = pa.schema([field for field in there if field.name != DAY.name])
        schema, missing = fit(there, self._wanted, self._root)
        checks = self._checks()
        if missing:
            self._table.alter.add_columns([Field.from_arrow(field) for field in missing])
        in_files = pa.schema([field for field in schema if field.name not in self._parts])
        stem = stem_of(follower, batch)
        return FileShape(
            directory=self._root,
            schema=in_files,
            is_hive=False,
            stem=stem,
            target=self._target,
            files=self._lake,
            checks=checks,
        )

    def _checks(self) -> RowChecks | None:
        """Return what the table demands of rows; None if that is nothing."""
        written = frozenset((*self._wanted.names, *self._parts))
        checks = row_checks(self._table, written, self._root)
        schema = self._table.schema().to_json()
        return RowChecks(checks, schema, written, self._root) if checks else None

    @property
    def _is_writable(self) -> bool:
        self._table.update_incremental()
        try:
            check_protocol(self._table, self._root)
        except UnwritableTableError:
            return False
        return True

    def commit(
        self,
        follower: str,
        batch: int,
        files: Sequence[DataFile],
        removed: Sequence[DataFile] = (),
        end: CommittedEnd | None = None,
    ) -> None:
        notes = {application(follower): batch, **(end_notes(follower, end) if end else {})}
        self._commit(
            [self._add(file, is_new=True) for file in files]
            + [self._remove(file, is_change=True) for file in removed],
            CommitProperties(app_transactions=[Transaction(*note) for note in notes.items()]),
        )

    def expire(self, keep: float) -> None:
        """Remove files that no version of the last `keep` seconds has, and remains of attempts.

        Delta Lake counts whole hours. They are rounded up: without an hour, it would remove what
        another follower is about to commit.

        The table's `delta.logRetentionDuration` controls when the log of versions is cleaned up.
        """
        if not self._is_writable:
            return
        try:
            self._table.vacuum(
                math.ceil(keep / 3600), dry_run=False, enforce_retention_duration=False, full=True
            )
            self._table.create_checkpoint()
            self._table.cleanup_metadata()
        except FAILURES as error:
            raise failure(self._root, error) from None
        self._table.update_incremental()

    def files(self) -> list[DataFile]:
        return list(self._files())

    def has_other_files(self) -> bool:
        self._table.update_incremental()
        return len(self.files()) < len(self._table.file_uris())

    def scan(self, columns: Sequence[str]) -> Iterator[Any]:
        self._table.update_incremental()
        try:
            try:
                yield from self._table.to_pyarrow_dataset().to_batches(columns=list(columns))
            except DeltaProtocolError:
                yield from self._queried(columns)
        except FAILURES as error:
            raise failure(self._root, error) from None

    def _queried(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield rows as the query engine of delta-rs reads them, which knows more features."""
        names = ", ".join('"' + name.replace('"', '""') + '"' for name in columns)
        query = QueryBuilder().register("lake", self._table)
        for batch in query.execute(f"SELECT {names} FROM lake"):  # noqa: S608  names are quoted
            yield pa.record_batch(batch)

    def column_names(self) -> list[str]:
        self._table.update_incremental()
        return [field.name for field in pa.schema(self._table.schema())]

    def merges(self, *, is_last: bool) -> list[Merge]:
        if not self._is_writable:
            return []
        groups = small_files(self._files(), self._target, utc_day(), is_last=is_last)
        return [Merge(group, files=self._lake) for group in groups]

    def replace(self, merged: Sequence[Merged]) -> None:
        there = {file.path for file in self._files()}
        actions: list[AddAction | RemoveAction] = []
        for one in merged:
            if all(file.path in there for file in one.inputs):
                actions.extend(self._remove(file, is_change=False) for file in one.inputs)
                actions.extend(self._add(file, is_new=False) for file in one.outputs)
        if actions:
            try:
                self._commit(actions, None)
            except CommitConflictError as error:
                tell_conflict(error)
                self._table.update_incremental()

    def _commit(self, actions: list[Any], properties: Any) -> None:
        try:
            self._table.create_write_transaction(
                actions, "append", self._table.schema(), self._parts, commit_properties=properties
            )
        except CommitFailedError as error:
            raise CommitConflictError(str(failure(self._root, error))) from None
        except FAILURES as error:
            raise failure(self._root, error) from None
        self._table.update_incremental()

    def _files(self) -> Iterable[DataFile]:
        """Yield the files of followers, without those that have deletion vectors."""
        self._table.update_incremental()
        marked = {row["filepath"] for row in pa.table(self._table.deletion_vectors()).to_pylist()}
        for row in pa.table(self._table.get_add_actions()).to_pylist():
            path, partition = f"{self._root}/{unquote(row['path'])}", row.get("partition") or {}
            file_name = basename(path)
            if file_name.startswith(PREFIX) and not any(file_name in name for name in marked):
                topic, day = partition.get("topic") or "", partition.get("day")
                rows, day = row["num_records"] or 0, "" if day is None else day.isoformat()
                yield DataFile(path, topic, day, rows, row["size_bytes"])

    def _add(self, file: DataFile, *, is_new: bool) -> AddAction:
        statistics = {"numRecords": file.rows, "minValues": file.least, "maxValues": file.most}
        text = msgspec.json.encode(statistics).decode()
        return AddAction(self._name(file), file.size, self._values(file), _now(), is_new, text)

    def _remove(self, file: DataFile, *, is_change: bool) -> RemoveAction:
        return RemoveAction(self._name(file), is_change, _now(), file.size, self._values(file))

    def _values(self, file: DataFile) -> dict[str, str | None]:
        """Return the partition of a file."""
        values = {"topic": file.topic, "day": file.day}
        return {part: values[part] for part in self._parts}

    def _name(self, file: DataFile) -> str:
        return file.path.removeprefix(f"{self._root}/")


def application(follower: str) -> str:
    """Return the name under which `txn` actions store a follower's newest batch."""
    return f"{PREFIX}{follower}"


def end_notes(follower: str, end: CommittedEnd) -> dict[str, int]:
    """Return the end of a batch as `txn` actions, whose versions are numbers."""
    name = application(follower)
    fingerprint = -1 if end.fingerprint is None else end.fingerprint
    notes = {f"{name}-end": end.physical_offset, f"{name}-fingerprint": fingerprint}
    return notes if end.batch is None else {**notes, f"{name}-end-batch": end.batch}


def noted_end(table: DeltaTable, follower: str) -> CommittedEnd | None:
    """Return where a follower's newest batch in a table ends; None if that is not recorded."""
    name = application(follower)
    end = table.transaction_version(f"{name}-end")
    fingerprint = table.transaction_version(f"{name}-fingerprint")
    batch = table.transaction_version(f"{name}-end-batch")
    known = None if fingerprint == -1 else fingerprint
    return None if end is None else CommittedEnd(end, known, batch)


def failure(place: str, error: Exception) -> JobError:
    """Return the error of one line for what delta-rs raised; it writes several, in colors."""
    return JobError(f"{place}: {' '.join(_COLOR.sub('', str(error)).split())}")


def _now() -> int:
    return SystemClock().milliseconds()
