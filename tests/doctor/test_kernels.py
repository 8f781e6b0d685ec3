"""Kernels that are compiled, not yet, or in Python."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqlake.doctor.finding import Severity
from mqlake.doctor.kernels import WARM_UP, kernels
from mqlake.kernels import jit


def test_kernels_that_are_not_compiled_yet_are_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MQLAKE_KERNEL", raising=False)
    monkeypatch.setattr(jit, "CACHE", tmp_path)
    assert (kernels().state, kernels().mend) == (Severity.NOTE, WARM_UP)
    (tmp_path / "put.nbi").touch()
    assert (kernels().state, kernels().found) == (Severity.OK, f"1 compiled, in {tmp_path}")


def test_a_cache_that_nobody_can_write_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MQLAKE_KERNEL", raising=False)
    monkeypatch.setattr(jit, "CACHE", None)
    assert (kernels().state, "NUMBA_CACHE_DIR" in kernels().mend) == (Severity.PROBLEM, True)


def test_slow_kernels_are_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MQLAKE_KERNEL", "reference")
    assert (kernels().state, kernels().mend) == (Severity.NOTE, "unset MQLAKE_KERNEL")
