"""Messages are counted by either twin of the kernels, which is chosen by how much there is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mqlake.query.store import counting
from mqlake.query.store.place import open_store
from mqlake.query.store.plan import plan_batch
from mqlake.query.store.row_filter import RowFilter
from tests.golden import ROOT, store
from tests.query.store.mixed import BATCH, MixedStore
from tests.query.store.rows import options_of, task_rows

PROGRAM = """
import sys
from mqlake.query.store import counting
from mqlake.query.store.place import open_store
from mqlake.query.store.row_filter import RowFilter

with open_store(sys.argv[1]) as store:
    for end in map(int, sys.argv[2:]):
        found = counting.count(store.log, (0, end), RowFilter(()), 1 << 30, is_split=True)
        print(found, "numba" in sys.modules)
"""


def counted(path: Path, *ends: int) -> list[str]:
    """Count in a new process; return each count and whether kernels were loaded by then."""
    environment = {name: value for name, value in os.environ.items() if name != "MQLAKE_KERNEL"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, path, *map(str, ends)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()


def test_kernels_are_loaded_once_there_is_more_to_count() -> None:
    golden = store("rmq5-clean")
    found = sorted(message["physicalOffset"] for message in golden.messages())
    few, more = found[200], found[-1]
    assert few < counting.FEW < more
    assert counted(golden.path, few, more) == ["200 False", f"{len(found) - 1} True"]


@pytest.mark.parametrize("name", ["rmq5-torn", "rmq49-clean"])
def test_both_twins_cut_alike(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cuts: list[list[int]] = []
    for kernels in ("compiled", "reference"):
        monkeypatch.setenv("MQLAKE_KERNEL", kernels)
        with open_store(str(store(name).path)) as opened:
            stretch = (opened.log.min_offset, opened.snapshot.end.offset)
            found = counting.cuts(opened.log, stretch, RowFilter(()), 100, is_split=True)
            cuts.append(list(found))
    assert cuts[0] == cuts[1]
    assert len(cuts[0]) > 3


@pytest.mark.parametrize("decompress", [True, False])
@pytest.mark.parametrize("most", [1, 2, 7, 60])
def test_each_partition_has_messages_and_no_more_than_asked(
    tmp_path: Path, most: int, *, decompress: bool
) -> None:
    path = MixedStore(tmp_path / "store", 1).path
    options = options_of(path, maxRecordsPerPartition=most, decompress=decompress)
    found = [len(list(task_rows(task, options))) for task in plan_batch(options).tasks]
    # An inner batch is not divided.
    assert all(0 < rows < most + (BATCH if decompress else 1) for rows in found)


def test_stored_records_are_counted_without_codecs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = MixedStore(tmp_path / "store", 1).path
    monkeypatch.setitem(sys.modules, "cramjam", None)
    given = {"decompress": False, "maxRecordsPerPartition": 10}
    with open_store(str(path)) as opened:
        end = opened.snapshot.end.offset
        stretch = opened.log.min_offset, end
        assert counting.count(opened.log, stretch, RowFilter(()), 1000, is_split=False) == 60
    assert len(plan_batch(options_of(path, **given)).tasks) >= 6
