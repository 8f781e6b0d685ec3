"""A commit that removes files of a Parquet table removes their rows, once and for all."""

# pyright: basic
# Reason: pyarrow carries no types.

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from mqlake.lake.files.compaction import merge
from mqlake.lake.files.data_file import DataFile
from mqlake.lake.files.partition_writer import write_all
from mqlake.lake.options import Format
from mqlake.lake.tables.opening import open_table
from mqlake.lake.tables.table import LakeTable
from tests.lake.tables.tables import add, batch, numbers, options, row

REPLAY = "replay"


class KilledError(Exception):
    """The process ends here."""


def opened(path: Path) -> LakeTable:
    return open_table(options(path, Format.PARQUET))


def publish(table: LakeTable) -> None:
    table.replace([merge(job) for job in table.merges(is_last=True)])


def replace_by(table: LakeTable, number: int, old: Sequence[DataFile]) -> None:
    files = write_all(table.shape(REPLAY, 0), [batch([row(number)])])
    table.commit(REPLAY, 0, files, old)


def test_files_that_wait_are_removed_as_well(tmp_path: Path) -> None:
    path = tmp_path / "table"
    table = opened(path)
    add(table, 0, [row(0), row(1)])
    replace_by(table, 1, table.files())
    publish(table)
    add(table, 1, [row(2)])
    publish(opened(path))
    assert numbers(Format.PARQUET, path) == [1, 2]


def test_a_process_is_killed_before_it_removes_the_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "table"
    table = opened(path)
    add(table, 0, [row(0), row(1)])
    publish(table)

    def killed(*_: object, **_named: object) -> None:
        raise KilledError

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", killed)
        with pytest.raises(KilledError):
            replace_by(table, 1, table.files())
    again = opened(path)
    assert again.last_batch(REPLAY) == 0
    publish(again)
    assert numbers(Format.PARQUET, path) == [1]
