"""What a broker says of its kernels when it starts."""

from __future__ import annotations

import logging

import pytest

from mqlake import pace
from mqlake.dispatch import warm_up
from mqlake.kernels import first_use, jit
from mqlake.programs.kernels import load_kernels
from tests.until import wait_until


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


def test_the_first_start_says_that_it_compiles_before_it_does(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[list[str]] = []
    monkeypatch.setattr(first_use, "is_first_use", lambda _: True)
    monkeypatch.setattr(warm_up, "load", lambda **_: said.append(list(caplog.messages)))
    with caplog.at_level(logging.INFO, "mqlake"):
        load_kernels()
    assert said == [[first_use.MESSAGE]]


@pytest.mark.parametrize(("count", "what"), [(0, "loading kernels, "), (2, "compiling kernel 2, ")])
def test_progress_is_logged_while_kernels_are_loaded_and_compiled(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, count: int, what: str
) -> None:
    def noted() -> bool:
        return sum(line.startswith(what) for line in caplog.messages) >= 2

    monkeypatch.setattr(jit, "compiled_count", lambda: count)
    monkeypatch.setattr(pace, "PACE", 0.01)
    monkeypatch.setattr(warm_up, "load", lambda **_: wait_until(noted))
    with caplog.at_level(logging.INFO, "mqlake"):
        load_kernels()
    assert noted()
