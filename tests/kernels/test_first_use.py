"""Somebody who waits for the compiler is told so, once."""

from __future__ import annotations

from pathlib import Path

from mqlake.kernels.first_use import is_first_use


def test_one_caller_is_told(tmp_path: Path) -> None:
    assert [is_first_use(tmp_path) for _ in range(3)] == [True, False, False]


def test_nobody_is_told_once_there_is_code(tmp_path: Path) -> None:
    (tmp_path / "compiled").mkdir()
    (tmp_path / "compiled" / "scan.nbi").touch()
    assert not is_first_use(tmp_path)


def test_a_directory_that_cannot_be_written(tmp_path: Path) -> None:
    assert not is_first_use(tmp_path / "missing")
