"""What commands show on stderr while they work."""

from __future__ import annotations

import io
import sys

import pytest

from mqlake import pace
from mqlake.cli.progress import progress
from tests.until import wait_until


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def paced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "PACE", 0.01)


@pytest.mark.usefixtures("paced")
def test_without_a_terminal_lines_come_until_something_is_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    written = io.StringIO()
    monkeypatch.setattr(sys, "stderr", written)
    with progress(True, "starting Spark") as report:
        assert report is not None
        wait_until(lambda: "mqlake: starting Spark, " in written.getvalue())
        report("verify", 0, 4)
        wait_until(lambda: written.getvalue().count("\nverify: 0 of 4, ") >= 2)
        report("verify", 1, 4)
        report("verify", 4, 4)
    lines = written.getvalue().splitlines()
    assert lines[0] == "mqlake: starting Spark"
    assert lines[-2:] == ["verify: 1 of 4", "verify: 4 of 4"]
    begun = lines.index("verify: 0 of 4")
    assert all(line.startswith("mqlake: starting Spark, ") for line in lines[1:begun])


def test_a_terminal_shows_what_begins_before_the_first_job(monkeypatch: pytest.MonkeyPatch) -> None:
    written = _Terminal()
    monkeypatch.setattr(sys, "stderr", written)
    monkeypatch.setenv("TERM", "xterm")
    with progress(None, "starting Spark") as report:
        assert report is not None
        wait_until(lambda: "starting Spark" in written.getvalue())
        report("verify", 0, 4)
        wait_until(lambda: "verify" in written.getvalue())
        begun = written.tell()
        wait_until(lambda: written.tell() > begun)  # It is drawn again while nothing changes.
        assert "starting Spark" not in written.getvalue()[begun:]


def test_nothing_is_shown_without_a_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    with progress(None, "starting Spark") as report:
        assert report is None
    assert capfd.readouterr().err == ""
