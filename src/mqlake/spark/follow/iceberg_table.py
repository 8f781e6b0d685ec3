"""An Iceberg table, committed to through PyIceberg.

A batch is one change of the table's metadata: a snapshot with its files, and properties with the
follower, the batch's number and its end in the log. A catalog accepts a change only if no other
change was made meanwhile.
"""

# pyright: basic
# Reason: pyarrow carries no types.

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta
from posixpath import basename, dirname
from typing import Any

import msgspec
import pyarrow as pa

from mqlake.errors import JobError
from mqlake.spark.follow.committed_end import CommittedEnd
from mqlake.spark.follow.compaction import Merge, Merged, small_files, utc_day
from mqlake.spark.follow.data_file import DataFile
from mqlake.spark.follow.evolution import fit, wanted_schema
from mqlake.spark.follow.iceberg_expiry import expire
from mqlake.spark.follow.lake_files import is_url
from mqlake.spark.follow.lake_options import iceberg_options
from mqlake.spark.follow.options import STATE, FollowOptions
from mqlake.spark.follow.partition_writer import Shape
from mqlake.spark.follow.table import PREFIX, stem_of
from mqlake.storage.clock import SystemClock

try:
    from pyiceberg.catalog import Catalog, load_catalog
    from pyiceberg.exceptions import NoSuchTableError
    from pyiceberg.io.pyarrow import parquet_file_to_data_file
    from pyiceberg.table import Table, Transaction
    from pyiceberg.transforms import DayTransform, IdentityTransform
except ImportError:
    raise JobError("pyiceberg is not installed: pip install 'mqlake[iceberg]'") from None

NAMESPACE = "mqlake"
NAME_MAPPING = "schema.name-mapping.default"
PROPERTIES = {
    "commit.manifest-merge.enabled": "true",
    "write.metadata.delete-after-commit.enabled": "true",
}
SCHEME = "file://"

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
        self._identifier = _identifier_of(options)
        if "." not in self._identifier:
            raise JobError(f"{self._identifier}: give NAMESPACE.NAME as the table's name")
        catalog = _open_catalog(options)
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
            _map_names(transaction)
        return catalog.load_table(self._identifier)

    def _check(self) -> None:
        if _place(self._table.location()) != self._root:
            raise JobError(
                f"{self._identifier}: this table is at {self._table.location()}: give that as --out"
            )
        spec, schema = self._table.spec(), self._table.schema()
        parts = [(schema.find_column_name(part.source_id), part.transform) for part in spec.fields]
        if parts != [_SPEC[part] for part in self._parts]:
            there = ",".join(field.name for field in spec.fields) or "none"
            raise JobError(
                f"{self._identifier}: this table is partitioned by {there}: give that as "
                "--partition-by"
            )

    def last_batch(self, follower: str) -> int:
        self._table.refresh()
        return int(self._table.properties.get(batch_property(follower), -1))

    def shape(self, follower: str, batch: int) -> Shape:
        self._table.refresh()
        there = self._table.schema().as_arrow()
        schema, missing = fit(there, self._wanted, self._identifier)
        if missing:
            with self._table.transaction() as transaction:
                with transaction.update_schema() as update:
                    update.union_by_name(pa.schema(missing))
                _map_names(transaction)
        directory, stem = f"{self._root}/data", stem_of(follower, batch)
        return Shape(directory, schema, False, stem, self._target, self._files_of)

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
        there = {file.path: found for file, found in self._files()} if removed else {}
        if any(file.path not in there for file in removed):
            raise JobError(
                f"{self._identifier}: another program replaced files of this table meanwhile: "
                "start mqlake follow again"
            )
        with self._table.transaction() as transaction:
            transaction.set_properties(notes)
            if removed:
                with transaction.update_snapshot().overwrite() as overwrite:
                    for file in removed:
                        overwrite.delete_data_file(there[file.path])
                    for file in files:
                        overwrite.append_data_file(self._described(transaction, file))
            elif files:
                with transaction.update_snapshot().merge_append() as append:
                    for file in files:
                        append.append_data_file(self._described(transaction, file))

    def expire(self, keep: float) -> None:
        older_than = SystemClock().milliseconds() - int(keep * 1000)
        expire(self._table, self._files_of, self._root, older_than)

    def files(self) -> list[DataFile]:
        return [file for file, _ in self._files()]

    def has_other_files(self) -> bool:
        ours = self.files()
        return len(ours) < sum(1 for _ in self._table.scan().plan_files())

    def scan(self, columns: Sequence[str]) -> Iterator[Any]:
        self._table.refresh()
        rows = self._table.scan(selected_fields=tuple(columns)).to_arrow_batch_reader()
        for batch in rows:
            yield batch.select(list(columns))  # They are in the table's order.

    def column_names(self) -> list[str]:
        self._table.refresh()
        return [field.name for field in self._table.schema().fields]

    def merges(self, *, is_last: bool) -> list[Merge]:
        groups = small_files(self.files(), self._target, utc_day(), is_last=is_last)
        return [Merge(group, files=self._files_of) for group in groups]

    def replace(self, merged: Sequence[Merged]) -> None:
        there = {file.path: found for file, found in self._files()}
        taken = [one for one in merged if all(file.path in there for file in one.inputs)]
        if not taken:
            return
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
            path = _place(file.file_path)
            is_ours = basename(path).startswith(PREFIX)
            is_ours = is_ours and file.spec_id == self._table.spec().spec_id
            if is_ours and not task.delete_files:
                values = {part: file.partition[place] for place, part in enumerate(self._parts)}
                topic, day = values.get("topic") or "", values.get("day")
                text = "" if day is None else (_EPOCH + timedelta(days=day)).isoformat()
                size = file.file_size_in_bytes
                yield DataFile(path, topic, text, file.record_count, size), file

    def _described(self, transaction: Transaction, file: DataFile) -> Any:
        io, metadata = self._table.io, transaction.table_metadata
        return parquet_file_to_data_file(io, metadata, uri_of(file.path))


def exists(options: FollowOptions) -> bool:
    """Return whether a catalog has a table."""
    return _open_catalog(options).table_exists(_identifier_of(options))


def _identifier_of(options: FollowOptions) -> str:
    return options.table or f"{NAMESPACE}.{options.out.name}"


def _open_catalog(options: FollowOptions) -> Catalog:
    given, state = dict(options.catalog_options), options.out / STATE
    if options.url is not None and options.catalog is None and not given:
        raise JobError(f"{options.url}: a table on an object store needs --catalog")
    if options.catalog is not None:
        given["uri"] = options.catalog
    elif not given:
        state.mkdir(parents=True, exist_ok=True)
        given["uri"] = f"sqlite:///{state / 'catalog.db'}"
    if given.get("type") != "rest" and not given.get("uri", "").startswith("http"):
        given.setdefault("warehouse", uri_of(dirname(options.place)))  # REST servers name theirs
    if options.url is not None:
        given = {**iceberg_options(options.url, options.storage), **given}
    try:
        return load_catalog(options.catalog_name, **given)
    except Exception as error:  # noqa: BLE001  catalogs raise whatever their libraries do
        reason = without_secrets(str(error), given)
        name = without_secrets(given.get("uri", options.catalog_name), given)
        raise JobError(f"{name}: this catalog cannot be opened: {reason}") from None


def without_secrets(text: str, given: Mapping[str, str]) -> str:
    """Return a text without the values of options, and without the part before `@` in a URI."""
    for name, value in given.items():
        if name not in ("uri", "type", "warehouse") and value:
            text = text.replace(value, "***")
    return re.sub(r"(?<=://)[^/@\s]*@", "***@", text)


def _map_names(transaction: Transaction) -> None:
    """Let readers map columns by name in files whose columns have no ids."""
    mapping = transaction.table_metadata.schema().name_mapping.model_dump_json()
    transaction.set_properties({NAME_MAPPING: mapping})


def batch_property(follower: str) -> str:
    """Return the name of the property with a follower's newest batch."""
    return f"mqlake.follow.{follower}"


def _end_property(follower: str) -> str:
    return f"{batch_property(follower)}.end"


def noted_end(properties: Mapping[str, str], follower: str) -> CommittedEnd | None:
    """Return where a follower's newest batch in a table ends; None if that is not recorded."""
    written = properties.get(_end_property(follower))
    return None if written is None else msgspec.json.decode(written, type=CommittedEnd)


def uri_of(path: str) -> str:
    """Return the URI of a path or URL."""
    return path if is_url(path) else f"{SCHEME}{path}"


def _place(uri: str) -> str:
    return uri.removeprefix(SCHEME)
