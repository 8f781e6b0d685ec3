"""A snapshot of an Iceberg table, read through PyIceberg."""

# pyright: basic
# pyarrow has no types.

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from pyarrow import parquet

from mqlake.errors import JobError
from mqlake.lake.files.iceberg_columns import column_ids, names_there
from mqlake.lake.files.lake_files import LakeFiles
from mqlake.lake.options import STATE
from mqlake.lake.tables.committed_end import CommittedEnd
from mqlake.lake.tables.iceberg_catalog import NAMESPACE, place_of, without_secrets
from mqlake.lake.tables.iceberg_table import batch_property, noted_end
from mqlake.lake.tables.lake_options import iceberg_options
from mqlake.lake.union.lake import LakeFile
from mqlake.query.reading.conditions import (
    MOST,
    NUMBERS,
    AnyText,
    Selection,
    interval,
    named_queues,
    wants_topic,
)
from mqlake.query.store.columns import COLUMNS

try:
    from pyiceberg.catalog import load_catalog
    from pyiceberg.exceptions import NoSuchTableError
    from pyiceberg.manifest import DataFileContent, FileFormat
    from pyiceberg.table import Table
    from pyiceberg.transforms import IdentityTransform
except ImportError:
    raise JobError("pyiceberg is not installed: pip install 'mqlake[iceberg]'") from None

ice: Any = importlib.import_module("pyiceberg.expressions")  # Its classes check types at run time.

_FIRST_TIME, _LAST_TIME = -62_135_596_800_000, 253_402_300_799_999


def in_own_catalog(root: Path) -> IcebergLake:
    """Open a table whose catalog is an SQLite file in its directory."""
    uri = f"sqlite:///{(root / STATE / 'catalog.db').absolute()}"
    return in_catalog(f"{NAMESPACE}.{root.absolute().name}", uri, "default", {})


def in_catalog(table: str, uri: str | None, name: str, settings: Mapping[str, str]) -> IcebergLake:
    """Open a table by its name in a catalog; PyIceberg's settings complete what `uri` lacks.

    Args:
        settings: of the object store on which the table may be; only the catalog says where it is.

    Raises:
        JobError: the catalog cannot be opened, or does not have the table.
    """
    given = {} if uri is None else {"uri": uri}
    for store in ("s3://", "gs://", "abfss://"):
        given |= iceberg_options(store, settings)
    try:
        return IcebergLake(load_catalog(name, **given).load_table(table), LakeFiles(dict(settings)))
    except NoSuchTableError:
        raise JobError(f"{table}: the catalog does not have this table") from None
    except Exception as error:  # noqa: BLE001  catalogs raise whatever their libraries do
        reason = without_secrets(str(error), given)
        where = without_secrets(uri or name, given)
        raise JobError(f"{where}: this catalog cannot be opened: {reason}") from None


class IcebergLake:
    """See `lake.Lake`."""

    def __init__(self, table: Table, files: LakeFiles) -> None:
        self._table, self._lake = table, files
        self._ids = column_ids(table.metadata, COLUMNS)
        self._names = names_there(table.metadata, COLUMNS)  # Other programs may rename columns.
        self.root = place_of(table.location())

    @property
    def columns(self) -> Sequence[str]:
        return list(self._names)

    def last_batch(self, follower: str) -> int:
        return int(self._table.properties.get(batch_property(follower), -1))

    def end(self, follower: str) -> CommittedEnd | None:
        return noted_end(self._table.properties, follower)

    def files(self, selection: Selection) -> list[LakeFile]:
        scan = self._table.scan(row_filter=_expression(selection, self._names))
        return [
            self._file(task)
            for task in scan.plan_files()
            if (topic := self._topic(task.file)) is None or wants_topic(selection, topic)
        ]

    def has_topic(self, topic: str) -> bool:
        found = _expression((AnyText("topic", (topic,)),), self._names)
        return any(self._table.scan(row_filter=found).plan_files())

    def _topic(self, file: Any) -> str | None:
        """Return the topic of all rows of a file; None if its partition does not contain it."""
        spec = self._table.specs()[file.spec_id]
        for number, part in enumerate(spec.fields):
            name = self._table.schema().find_column_name(part.source_id)
            if (name, part.transform) == (self._names.get("topic"), IdentityTransform()):
                return file.partition[number]
        return None

    def _file(self, task: Any) -> LakeFile:
        file = task.file
        path = place_of(file.file_path)
        if file.file_format != FileFormat.PARQUET:
            raise JobError(f"{path}: {file.file_format} files cannot be read, only Parquet")
        deleted = _deleted(task, self._lake)
        return LakeFile(path, file.file_size_in_bytes, None, deleted, ids=self._ids)


def _deleted(task: Any, lake: LakeFiles) -> Any:
    """Return the numbers of the deleted rows of a file; None for none."""
    found: list[Any] = []
    for file in task.delete_files:
        path = place_of(file.file_path)
        is_readable = file.file_format == FileFormat.PARQUET
        if not is_readable or file.content != DataFileContent.POSITION_DELETES:
            raise JobError(
                f"{path}: the table has deletions of a kind that cannot be read: rewrite its "
                "data files (rewrite_data_files)"
            )
        wanted = [("file_path", "=", task.file.file_path)]
        filesystem, inner = lake.source(path)
        rows = parquet.read_table(inner, columns=["pos"], filesystem=filesystem, filters=wanted)
        found.append(rows.column("pos").to_numpy())
    return np.unique(np.concatenate(found)) if found else None


def _expression(selection: Selection, names: Mapping[str, str]) -> Any:
    """Return PyIceberg's filter for files; it lets all files through that may have selected
    rows.

    Args:
        names: the table's names of columns.
    """
    parts: list[Any] = []
    for name in NUMBERS:
        low, high = interval(selection, name)
        column = names.get(name, name)
        if low > high:
            return ice.AlwaysFalse()
        if low > -MOST:
            parts.append(ice.GreaterThanOrEqual(column, _value(name, low)))
        if high < MOST:
            parts.append(ice.LessThanOrEqual(column, _value(name, high)))
    texts = (one for one in selection if isinstance(one, AnyText))
    parts += [ice.In(names.get(one.column, one.column), one.values) for one in texts]
    queues = named_queues(selection)
    if queues is not None:
        parts.append(ice.In(names.get("topic", "topic"), {topic for topic, _ in queues}))
    whole: Any = ice.AlwaysTrue()
    for part in parts:
        whole = ice.And(whole, part)
    return whole


def _value(column: str, number: int) -> Any:
    """Return a number as a literal; times are in microseconds."""
    if column != "storeTimestamp":
        return number
    clamped = min(max(number, _FIRST_TIME), _LAST_TIME)
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=clamped)).isoformat()
