"""What a broker says of its kernels when it starts."""

from __future__ import annotations

import logging

import pytest

from mqlake.kernels import jit
from mqlake.programs.kernels import load_kernels


@pytest.mark.parametrize(("count", "lines"), [(0, 0), (2, 1)])
def test_only_kernels_that_are_compiled_are_worth_a_line(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, count: int, lines: int
) -> None:
    """However long it takes: a busy machine needs seconds to load them."""
    monkeypatch.setattr(jit, "compiled_count", lambda: count)
    with caplog.at_level(logging.INFO, "mqlake"):
        load_kernels()
    found = [line for line in caplog.messages if "kernels compiled in" in line]
    assert len(found) == lines
    assert all(line.startswith(f"{count} ") for line in found)
