"""Derived files, against those that a rebuild makes."""

from __future__ import annotations

from pathlib import Path

from mqlake.jobs.local import LocalEngine
from mqlake.jobs.rebuild import rebuild
from tests.jobs.model import read_index_files, read_queue_files
from tests.peer.workload import DELAYS


def check_derived_files(path: Path) -> None:
    out = path.parent / f"{path.name}-rebuilt"
    rebuild(path, LocalEngine(1), out=out, delay_levels=DELAYS)
    assert read_queue_files(path) == read_queue_files(out)
    assert read_index_files(path) == read_index_files(out)
