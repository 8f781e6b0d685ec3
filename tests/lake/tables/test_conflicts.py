"""Other programs commit while files are merged or removed: that is left to the next time."""

# pyright: basic
# Reason: pyarrow carries no types.

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyiceberg.table.maintenance import MaintenanceTable

from mqlake.errors import JobError
from mqlake.lake.files.compaction import merge
from mqlake.lake.files.partition_writer import write_all
from mqlake.lake.options import Format
from mqlake.lake.tables.iceberg_table import IcebergTable
from mqlake.lake.tables.opening import open_table
from mqlake.lake.tables.table import LakeTable
from tests.lake.tables.tables import FOLLOWER, add, batch, iceberg, numbers, options, row


def delete_one(path: Path, format_: Format) -> None:
    if format_ is Format.DELTA:
        DeltaTable(path).delete("queueOffset = 1")
    else:
        iceberg(path).delete("queueOffset = 1")


def delete_all(paths: list[Path]) -> None:
    while paths:
        delete_one(paths.pop(), Format.ICEBERG)


def meanwhile(
    patch: pytest.MonkeyPatch, table: LakeTable, name: str, others: Callable[[], None]
) -> None:
    """Have another program change the table after a method of the table has looked at it."""
    real = getattr(type(table), name)

    def looked(self: LakeTable, *given: Any) -> Any:
        found = list(real(self, *given))
        others()
        return iter(found)

    patch.setattr(type(table), name, looked)


@pytest.mark.parametrize("format_", [Format.DELTA, Format.ICEBERG])
def test_a_file_is_removed_while_it_is_merged(
    tmp_path: Path, format_: Format, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "table"
    table = open_table(options(path, format_))
    for number in range(3):
        add(table, number, [row(number)])
    merged = [merge(job) for job in table.merges(is_last=True)]
    with pytest.MonkeyPatch.context() as patch:
        meanwhile(patch, table, "_files", lambda: delete_one(path, format_))
        table.replace(merged)
    assert "the next time" in caplog.text
    assert numbers(format_, path) == [0, 2]
    add(table, 3, [row(3)])
    table.replace([merge(job) for job in table.merges(is_last=True)])
    assert numbers(format_, path) == [0, 2, 3]


def test_snapshots_are_expired_the_next_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "table"
    table = open_table(options(path, Format.ICEBERG))
    add(table, 0, [row(0)])
    add(table, 1, [row(1)])
    real = MaintenanceTable.expire_snapshots

    def looked(self: MaintenanceTable) -> Any:
        iceberg(path).delete("queueOffset = 1")
        return real(self)

    with monkeypatch.context() as patch:
        patch.setattr(MaintenanceTable, "expire_snapshots", looked)
        table.expire(0)
    assert numbers(Format.ICEBERG, path) == [0]
    table.expire(0)
    assert len(iceberg(path).metadata.snapshots) == 1


def test_rows_are_not_replaced_in_a_file_that_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "table"
    table = open_table(options(path, Format.ICEBERG, partition_by=("topic",)))
    assert isinstance(table, IcebergTable)
    add(table, 0, [row(0), row(1)])
    old = table.files()
    files = write_all(table.shape(FOLLOWER, 1), [batch([row(0)])])
    others = [path]
    with pytest.MonkeyPatch.context() as patch:
        meanwhile(patch, table, "_files", lambda: delete_all(others))
        with pytest.raises(JobError, match="another program replaced files"):
            table.commit(FOLLOWER, 1, files, old)
    assert numbers(Format.ICEBERG, path) == [0]
