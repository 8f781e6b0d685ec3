"""A snapshot of an Iceberg table, read through PyIceberg."""

# pyright: basic
# Reason: pyarrow carries no types.

from __future__ import annotations

import importlib
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from pyarrow import parquet

from mqlake.errors import JobError
from mqlake.spark.follow.committed_end import CommittedEnd
from mqlake.spark.follow.iceberg_table import NAMESPACE, batch_property, noted_end, without_secrets
from mqlake.spark.follow.options import STATE
from mqlake.spark.reading.conditions import (
    MOST,
    NUMBERS,
    AnyText,
    Selection,
    interval,
    named_queues,
    wants_topic,
)
from mqlake.spark.union.lake import LakeFile

try:
    from pyiceberg.catalog import load_catalog
    from pyiceberg.exceptions import NoSuchTableError
    from pyiceberg.manifest import DataFileContent, FileFormat
    from pyiceberg.table import Table
    from pyiceberg.transforms import IdentityTransform
except ImportError:
    raise JobError("pyiceberg is not installed: pip install 'mqlake[iceberg]'") from None

ice: Any = importlib.import_module("pyiceberg.expressions")  # its classes check types at run time

SCHEME = "file://"
_FIRST_TIME, _LAST_TIME = -62_135_596_800_000, 253_402_300_799_999


def in_own_catalog(root: Path) -> IcebergLake:
    """Open a table whose catalog is an SQLite file in it."""
    uri = f"sqlite:///{(root / STATE / 'catalog.db').absolute()}"
    return in_catalog(f"{NAMESPACE}.{root.absolute().name}", uri, "default")


def in_catalog(table: str, uri: str | None, name: str) -> IcebergLake:
    """Open a table by its name in a catalog; what `uri` does not say, PyIceberg's settings do.

    Raises:
        JobError: the catalog cannot be opened, or has no such table.
    """
    given = {} if uri is None else {"uri": uri}
    try:
        return IcebergLake(load_catalog(name, **given).load_table(table))
    except NoSuchTableError:
        raise JobError(f"{table}: there is no such table in the catalog") from None
    except Exception as error:  # noqa: BLE001  catalogs raise whatever their libraries do
        reason = without_secrets(str(error), given)
        where = without_secrets(uri or name, given)
        raise JobError(f"{where}: this catalog cannot be opened: {reason}") from None


class IcebergLake:
    """See `lake.Lake`."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self.root = Path(_place(table.location()))

    @property
    def columns(self) -> Sequence[str]:
        return [field.name for field in self._table.schema().fields]

    def last_batch(self, follower: str) -> int:
        return int(self._table.properties.get(batch_property(follower), -1))

    def end(self, follower: str) -> CommittedEnd | None:
        return noted_end(self._table.properties, follower)

    def files(self, selection: Selection) -> list[LakeFile]:
        scan = self._table.scan(row_filter=_expression(selection))
        return [
            self._file(task)
            for task in scan.plan_files()
            if (topic := self._topic(task.file)) is None or wants_topic(selection, topic)
        ]

    def has_topic(self, topic: str) -> bool:
        return any(self._table.scan(row_filter=ice.EqualTo("topic", topic)).plan_files())

    def _topic(self, file: Any) -> str | None:
        """Return the topic of all rows of a file; None if its partition does not say."""
        spec = self._table.specs()[file.spec_id]
        for number, part in enumerate(spec.fields):
            name = self._table.schema().find_column_name(part.source_id)
            if (name, part.transform) == ("topic", IdentityTransform()):
                return file.partition[number]
        return None

    def _file(self, task: Any) -> LakeFile:
        file = task.file
        path = _place(file.file_path)
        if file.file_format != FileFormat.PARQUET:
            raise JobError(f"{path}: {file.file_format}: only Parquet files can be read")
        return LakeFile(path, file.file_size_in_bytes, None, _deleted(task))


def _deleted(task: Any) -> Any:
    """Return the numbers of the deleted rows of a file; None for none."""
    found: list[Any] = []
    for file in task.delete_files:
        path = _place(file.file_path)
        is_readable = file.file_format == FileFormat.PARQUET
        if not is_readable or file.content != DataFileContent.POSITION_DELETES:
            raise JobError(
                f"{path}: rows were deleted in a way that cannot be read here: rewrite the data "
                "files of the table (rewrite_data_files)"
            )
        wanted = [("file_path", "=", task.file.file_path)]
        rows = parquet.read_table(path, columns=["pos"], filters=wanted)
        found.append(rows.column("pos").to_numpy())
    return np.unique(np.concatenate(found)) if found else None


def _expression(selection: Selection) -> Any:
    """Return what PyIceberg leaves files out by; it lets through all that may be wanted."""
    parts: list[Any] = []
    for name in NUMBERS:
        low, high = interval(selection, name)
        if low > high:
            return ice.AlwaysFalse()
        if low > -MOST:
            parts.append(ice.GreaterThanOrEqual(name, _value(name, low)))
        if high < MOST:
            parts.append(ice.LessThanOrEqual(name, _value(name, high)))
    parts += [ice.In(one.column, one.values) for one in selection if isinstance(one, AnyText)]
    queues = named_queues(selection)
    if queues is not None:
        parts.append(ice.In("topic", {topic for topic, _ in queues}))
    whole: Any = ice.AlwaysTrue()
    for part in parts:
        whole = ice.And(whole, part)
    return whole


def _value(column: str, number: int) -> Any:
    """Return a number as literals have it: times in microseconds."""
    if column != "storeTimestamp":
        return number
    clamped = min(max(number, _FIRST_TIME), _LAST_TIME)
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=clamped)).isoformat()


def _place(uri: str) -> str:
    return uri.removeprefix(SCHEME)
