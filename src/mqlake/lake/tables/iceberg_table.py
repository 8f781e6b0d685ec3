"""An Iceberg table, committed to through PyIceberg.

A batch is one change of the table's metadata: a snapshot with its files, and properties with the
follower, the batch's number and its end in the log. A catalog accepts a change only if no other
change was made meanwhile.
"""

# pyright: basic
# Reason: pyarrow carries no types.

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta
from posixpath import basename
from typing import Any

import msgspec
import pyarrow as pa

from mqlake.errors import JobError
from mqlake.lake.files.compaction import Merge, Merged, small_files, utc_day
from mqlake.lake.files.data_file import DataFile
from mqlake.lake.files.field_ids import ids_of
from mqlake.lake.files.iceberg_columns import (
    NAME_MAPPING,
    add_columns,
    column_ids,
    columns_there,
    file_schema,
    names_there,
    note_columns,
)
from mqlake.lake.files.partition_writer import FileShape
from mqlake.lake.options import STATE, FollowOptions
from mqlake.lake.tables.committed_end import CommittedEnd
from mqlake.lake.tables.conflicts import CommitConflictError, tell_conflict
from mqlake.lake.tables.evolution import UnwritableTableError, fit, wanted_schema
from mqlake.lake.tables.iceberg_catalog import identifier_of, open_catalog, place_of, uri_of
from mqlake.lake.tables.iceberg_expiry import expire
from mqlake.lake.tables.iceberg_files import described
from mqlake.lake.tables.table import PREFIX, stem_of
from mqlake.storage.clock import SystemClock

try:
    from pyiceberg.catalog import Catalog
    from pyiceberg.exceptions import CommitFailedException, NoSuchTableError, ValidationException
    from pyiceberg.table import Table, Transaction
    from pyiceberg.transforms import DayTransform, IdentityTransform
except ImportError:
    raise JobError("pyiceberg is not installed: pip install 'mqlake[iceberg]'") from None

NEWEST_VERSION = 2
"""The newest version of the format that PyIceberg writes."""

CONFLICTS = (CommitFailedException, ValidationException)
"""What PyIceberg raises if another program has committed; nothing was committed then."""

ATTEMPTS = 10
"""Attempts to commit a batch while other programs commit."""

PROPERTIES = {
    "commit.manifest-merge.enabled": "true",
    "write.metadata.delete-after-commit.enabled": "true",
}

_SPEC: dict[str, tuple[str, Any]] = {
    "topic": ("topic", IdentityTransform()),
    "day": ("storeTimestamp", DayTransform()),
}
_EPOCH = date(1970, 1, 1)


class IcebergTable:
    """See `table.LakeTable`."""

    def __init__(self, options: FollowOptions) -> None:
        self._root, self._target = options.place, options.target_file_size
        self._files_of, self._state = options.files, options.out / STATE
        self._parts = options.partition_by
        self._wanted = wanted_schema(options)
        self._identifier = identifier_of(options)
        if "." not in self._identifier:
            raise JobError(f"{self._identifier}: give NAMESPACE.NAME as the table's name")
        catalog = open_catalog(options)
        try:
            self._table = catalog.load_table(self._identifier)
        except NoSuchTableError:
            self._table = self._create(catalog)
        self._check()

    def _create(self, catalog: Catalog) -> Table:
        catalog.create_namespace_if_not_exists(self._identifier.rpartition(".")[0])
        self._state.parent.mkdir(parents=True, exist_ok=True)
        with catalog.create_table_transaction(
            self._identifier,
            self._wanted,
            location=uri_of(self._root),
            properties=PROPERTIES,
        ) as transaction:
            with transaction.update_spec() as spec:
                for part in self._parts:
                    column, transform = _SPEC[part]
                    spec.add_field(column, transform, part)
            note_columns(transaction, self._wanted.names)
        return catalog.load_table(self._identifier)

    def _check(self) -> None:
        if place_of(self._table.location()) != self._root:
            raise JobError(
                f"{self._identifier}: this table is at {self._table.location()}: give that as --out"
            )
        self._check_partitions()

    def _check_partitions(self) -> None:
        """Check the partitions by field ids: other programs may have renamed their columns."""
        spec, ids = self._table.spec(), column_ids(self._table.metadata, self._wanted.names)
        parts = [(part.source_id, part.transform) for part in spec.fields]
        wanted = [_SPEC[part] for part in self._parts]
        if parts != [(ids.get(column), transform) for column, transform in wanted]:
            there = ",".join(field.name for field in spec.fields) or "none"
            raise JobError(
                f"{self._identifier}: this table is partitioned by {there}: give that as "
                "--partition-by"
            )

    def last_batch(self, follower: str) -> int:
        self._table.refresh()
        return int(self._table.properties.get(batch_property(follower), -1))

    def shape(self, follower: str, batch: int) -> FileShape:
        self._table.refresh()
        self._check_version()
        self._check_partitions()
        metadata = self._table.metadata
        there, dropped = columns_there(metadata, self._wanted.names)
        wanted = pa.schema([field for field in self._wanted if field.name not in dropped])
        schema, missing = fit(there, wanted, self._identifier)
        with self._table.transaction() as transaction:
            if missing:
                add_columns(transaction, missing)
            note_columns(transaction, self._wanted.names)
        metadata = self._table.metadata
        ids = column_ids(metadata, self._wanted.names)
        schema = file_schema(schema, metadata.schema(), ids)
        directory, stem = f"{self._root}/data", stem_of(follower, batch)
        return FileShape(directory, schema, False, stem, self._target, self._files_of)

    def _check_version(self) -> None:
        """Raise if PyIceberg cannot write what the table's format demands."""
        version = self._table.format_version
        if version > NEWEST_VERSION:
            raise UnwritableTableError(
                f"{self._identifier}: this table has format version {version}, and PyIceberg "
                f"writes versions up to {NEWEST_VERSION}: follow into another table"
            )

    def commit(
        self,
        follower: str,
        batch: int,
        files: Sequence[DataFile],
        removed: Sequence[DataFile] = (),
        end: CommittedEnd | None = None,
    ) -> None:
        notes = {batch_property(follower): str(batch)}
        if end is not None:
            notes[_end_property(follower)] = msgspec.json.encode(end).decode()
        for attempt in range(1, ATTEMPTS + 1):
            try:
                self._commit(notes, files, removed)
            except CONFLICTS as error:
                # Another program has committed since the table was loaded, or this one has, and
                # the answer was lost.
                if self.last_batch(follower) >= batch:
                    return
                if attempt == ATTEMPTS:
                    raise JobError(
                        f"{self._identifier}: other programs commit to this table all the time: "
                        f"{error}"
                    ) from None
            else:
                return

    def _commit(
        self, notes: dict[str, str], files: Sequence[DataFile], removed: Sequence[DataFile]
    ) -> None:
        there = {file.path: found for file, found in self._files()} if removed else {}
        if any(file.path not in there for file in removed):
            raise JobError(
                f"{self._identifier}: another program replaced files of this table meanwhile: "
                "start mqlake follow again"
            )
        with self._table.transaction() as transaction:
            transaction.set_properties(notes)
            if self._table.current_snapshot() is None:
                self._map_names(transaction, files)
            added = [self._described(transaction, file) for file in files]
            if removed:
                with transaction.update_snapshot().overwrite() as overwrite:
                    for file in removed:
                        overwrite.delete_data_file(there[file.path])
                    for file in added:
                        overwrite.append_data_file(file)
            elif files:
                with transaction.update_snapshot().merge_append() as append:
                    for file in added:
                        append.append_data_file(file)

    def _map_names(self, transaction: Transaction, files: Sequence[DataFile]) -> None:
        """Let readers find columns by name if files were written before the table had ids."""
        has_mapping = NAME_MAPPING in self._table.properties
        schemas = (self._files_of.metadata(file.path).schema for file in files)
        if not has_mapping and any(None in ids_of(one.to_arrow_schema()) for one in schemas):
            mapping = self._table.schema().name_mapping.model_dump_json()
            transaction.set_properties({NAME_MAPPING: mapping})

    def expire(self, keep: float) -> None:
        self._table.refresh()
        if self._table.format_version > NEWEST_VERSION:
            return
        older_than = SystemClock().milliseconds() - int(keep * 1000)
        try:
            expire(self._table, self._files_of, self._root, older_than)
        except CONFLICTS as error:
            tell_conflict(CommitConflictError(f"{self._identifier}: {error}"))

    def files(self) -> list[DataFile]:
        return [file for file, _ in self._files()]

    def has_other_files(self) -> bool:
        ours = self.files()
        return len(ours) < sum(1 for _ in self._table.scan().plan_files())

    def scan(self, columns: Sequence[str]) -> Iterator[Any]:
        self._table.refresh()
        names = names_there(self._table.metadata, columns)
        there = [names[column] for column in columns]
        for batch in self._table.scan(selected_fields=tuple(there)).to_arrow_batch_reader():
            # They are in the table's order.
            yield batch.select(there).rename_columns(list(columns))

    def column_names(self) -> list[str]:
        self._table.refresh()
        return list(names_there(self._table.metadata, self._wanted.names))

    def merges(self, *, is_last: bool) -> list[Merge]:
        if self._table.format_version > NEWEST_VERSION:
            return []
        groups = small_files(self.files(), self._target, utc_day(), is_last=is_last)
        mapping = self._table.properties.get(NAME_MAPPING, "")
        return [Merge(group, files=self._files_of, name_mapping=mapping) for group in groups]

    def replace(self, merged: Sequence[Merged]) -> None:
        there = {file.path: found for file, found in self._files()}
        taken = [one for one in merged if all(file.path in there for file in one.inputs)]
        if not taken:
            return
        try:
            self._replace(taken, there)
        except CONFLICTS as error:
            tell_conflict(CommitConflictError(f"{self._identifier}: {error}"))

    def _replace(self, taken: Sequence[Merged], there: Mapping[str, Any]) -> None:
        with (
            self._table.transaction() as transaction,
            transaction.update_snapshot().overwrite() as overwrite,
        ):
            for one in taken:
                for file in one.inputs:
                    overwrite.delete_data_file(there[file.path])
                for file in one.outputs:
                    overwrite.append_data_file(self._described(transaction, file))

    def _files(self) -> Iterator[tuple[DataFile, Any]]:
        """Yield the files of followers, except those with deleted rows."""
        self._table.refresh()
        for task in self._table.scan().plan_files():
            file = task.file
            path = place_of(file.file_path)
            is_ours = basename(path).startswith(PREFIX)
            is_ours = is_ours and file.spec_id == self._table.spec().spec_id
            if is_ours and not task.delete_files:
                values = {part: file.partition[place] for place, part in enumerate(self._parts)}
                topic, day = values.get("topic") or "", values.get("day")
                text = "" if day is None else (_EPOCH + timedelta(days=day)).isoformat()
                size = file.file_size_in_bytes
                yield DataFile(path, topic, text, file.record_count, size), file

    def _described(self, transaction: Transaction, file: DataFile) -> Any:
        return described(self._table.io, transaction.table_metadata, uri_of(file.path))


def batch_property(follower: str) -> str:
    """Return the name of the property with a follower's newest batch."""
    return f"mqlake.follow.{follower}"


def _end_property(follower: str) -> str:
    return f"{batch_property(follower)}.end"


def noted_end(properties: Mapping[str, str], follower: str) -> CommittedEnd | None:
    """Return where a follower's newest batch in a table ends; None if that is not recorded."""
    written = properties.get(_end_property(follower))
    return None if written is None else msgspec.json.decode(written, type=CommittedEnd)
