"""Kernels that are compiled are told from those that are loaded."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from mqlake.kernels import jit
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


def test_threads_that_import_kernels_do_not_move_each_others_caches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[str] = []

    class Made:
        py_func = None

    def njit(**_: object) -> Callable[[object], Any]:
        def decorate(_: object) -> Made:
            time.sleep(0.02)
            seen.append(jit.config.CACHE_DIR)
            return Made()

        return decorate

    monkeypatch.setattr(jit, "njit", njit)
    monkeypatch.setattr(jit, "_kernels", [])
    before = jit.config.CACHE_DIR
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(jit.kernel, [len] * 12))
    assert seen == [str(jit.CACHE or "")] * 12
    assert before == jit.config.CACHE_DIR
