"""Messages are counted by either twin of the kernels, which is chosen by how much there is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mqlake.query.store import counting
from mqlake.query.store.place import open_store
from mqlake.query.store.row_filter import RowFilter
from tests.golden import ROOT, store

PROGRAM = """
import sys
from mqlake.query.store import counting
from mqlake.query.store.place import open_store
from mqlake.query.store.row_filter import RowFilter

with open_store(sys.argv[1]) as store:
    for end in map(int, sys.argv[2:]):
        found = counting.count(store.log, (0, end), RowFilter(()), 1 << 30)
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
            cuts.append(list(counting.cuts(opened.log, stretch, RowFilter(()), 100)))
    assert cuts[0] == cuts[1]
    assert len(cuts[0]) > 3
