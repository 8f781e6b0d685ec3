"""Loading the kernel for runs of pulls."""

from __future__ import annotations

from pathlib import Path

from tests.kernels.processes import run

LOADS = """
from mqlake.broker.pull import warm_up
from mqlake.kernels import jit
warm_up.load()
print(jit.compiled_count(), all(map(jit.is_cached, warm_up.KERNELS)))
"""


def test_the_kernel_is_compiled_in_another_process(tmp_path: Path) -> None:
    assert run(LOADS, NUMBA_CACHE_DIR=str(tmp_path)) == "0 True"
