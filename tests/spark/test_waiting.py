"""What a program says while it waits for Spark."""

from __future__ import annotations

import pytest

from mqlake import pace
from mqlake.spark.waiting import progress_lines
from tests.until import wait_until


def test_what_is_waited_for_is_said_at_once_and_again_until_it_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pace, "PACE", 0.01)
    lines: list[str] = []
    with progress_lines("starting Spark", lines.append):
        assert lines[0] == "starting Spark"
        wait_until(lambda: len(lines) > 2)
    assert all(line.startswith("starting Spark, ") for line in lines[1:])
    assert lines[1].endswith(" s")


def test_lines_go_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_lines("starting Spark"):
        pass
    written = capsys.readouterr()
    assert written.err == "mqlake: starting Spark\n"
    assert not written.out


def test_a_closed_stderr_does_not_end_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(line: str) -> None:
        told.append(line)
        if len(told) > 1:
            raise BrokenPipeError

    monkeypatch.setattr(pace, "PACE", 0.01)
    told: list[str] = []
    with progress_lines("starting Spark", fail):
        wait_until(lambda: len(told) == 2)
