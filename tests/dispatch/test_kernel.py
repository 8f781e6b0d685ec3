"""Choosing, caching and bounds-checking the kernels."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mqlake.dispatch import kernel
from mqlake.errors import MqlakeError
from tests.kernels.processes import run

TESTS = Path(__file__).parent


def test_kernels_are_chosen_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MQLAKE_KERNEL", "reference")
    assert kernel.load().__name__ == "mqlake.dispatch.reference"
    assert kernel.load("compiled").__name__ == "mqlake.dispatch.compiled.calls"
    with pytest.raises(MqlakeError, match="no kernels named 'fast'"):
        kernel.load("fast")


def test_plain_scan_imports_neither_numpy_nor_numba() -> None:
    code = "import sys, mqlake.dispatch.reference; print({'numpy', 'numba'} & set(sys.modules))"
    assert run(code) == "set()"


@pytest.mark.nightly  # tests/hostile scans so in each run
@pytest.mark.timeout(600)
def test_bounds_checked_build() -> None:
    """All kernel tests once more, with each load and store checked."""
    files = [str(path) for path in sorted(TESTS.glob("test_*.py")) if path.name != "test_kernel.py"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-k", "not reference", "-n0", *files],
        env=os.environ | {"MQLAKE_BOUNDSCHECK": "1"},
        cwd=TESTS.parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]
