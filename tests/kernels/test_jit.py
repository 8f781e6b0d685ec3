"""Kernels that are compiled are told from those that are loaded."""

from __future__ import annotations

from pathlib import Path

from tests.kernels.processes import run

KERNEL = """
from mqlake.kernels.jit import kernel

@kernel
def double(x):
    return 2 * x
"""
CALL = """
import sys
sys.path.insert(0, {path!r})
import a_kernel
from mqlake.kernels import jit
before = jit.compiled_count()
a_kernel.double(21)
a_kernel.double(22)
print(before, jit.compiled_count())
"""


def test_what_the_cache_has_is_not_compiled_again(tmp_path: Path) -> None:
    (tmp_path / "a_kernel.py").write_text(KERNEL)
    cache = tmp_path / "cache"
    for expected in ("0 1", "0 0"):
        assert run(CALL.format(path=str(tmp_path)), NUMBA_CACHE_DIR=str(cache)) == expected
