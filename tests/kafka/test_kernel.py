"""Loading and bounds-checking the kernels."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mqlake.kafka.compiled import batches, index_entries, records
from mqlake.kafka.warm_up import load

TESTS = Path(__file__).parent
FILES = ("batches/test_scan.py", "records/test_scan.py", "test_twins.py")


@pytest.mark.nightly  # tests/hostile scans so in each run
@pytest.mark.timeout(600)
def test_bounds_checked_build() -> None:
    """The tests of the kernels once more, with each load and store checked."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-n0", *(str(TESTS / name) for name in FILES)],
        env=os.environ | {"MQLAKE_BOUNDSCHECK": "1"},
        cwd=TESTS.parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]


def test_warming_up_loads_every_kernel() -> None:
    """With the types that a scan calls it with: another call would compile it again."""
    load()
    kernels = (batches.walk, index_entries.choose, records.decode_stretch)
    bodies = (records.is_good_body, records.decode_body)
    for kernel in (*kernels, *bodies):
        assert kernel.signatures
