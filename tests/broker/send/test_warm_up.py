"""Loading the kernels for runs of sends."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqlake.broker.send import warm_up
from mqlake.kernels import jit
from tests.kernels.processes import run

LOADS = """
from mqlake.broker.send import warm_up
from mqlake.kernels import jit
warm_up.load()
print(jit.compiled_count(), all(map(jit.is_cached, warm_up.KERNELS)))
"""


LOADED = """
from mqlake.broker.send import warm_up
warm_up.load()
print(all(kernel.signatures for kernel in warm_up.KERNELS))
"""


def test_each_kernel_is_loaded() -> None:
    assert run(LOADED) == "True"


@pytest.mark.nightly
def test_kernels_are_compiled_in_another_process(tmp_path: Path) -> None:
    assert run(LOADS, NUMBA_CACHE_DIR=str(tmp_path)) == "0 True"


def test_without_a_cache_nothing_is_cached(monkeypatch: pytest.MonkeyPatch) -> None:
    warm_up.load()
    assert all(map(jit.is_cached, warm_up.KERNELS))
    monkeypatch.setattr(jit, "CACHE", None)
    assert not any(map(jit.is_cached, warm_up.KERNELS))
