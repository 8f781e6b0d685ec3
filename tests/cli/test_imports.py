"""What a terminal shows while a command imports what it needs."""

from __future__ import annotations

import io
import re
import sys
import threading
from contextlib import ExitStack
from pathlib import Path

import pytest

from mqlake import pace
from mqlake.cli.progress import imported_package, reported_imports
from tests.until import wait_until

SLOW = """
import sys
sys.modules["tests.cli.test_imports"].report()
"""
_is_seen = threading.Event()
_reports = ExitStack()


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def report() -> None:
    """Report the import that has called this; let it end once somebody has seen that."""
    _reports.enter_context(reported_imports())
    assert _is_seen.wait(200)


@pytest.fixture
def slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the name of a module whose import lasts until it was seen."""
    _is_seen.clear()
    (tmp_path / "slow_to_import.py").write_text(SLOW)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "slow_to_import", raising=False)
    return "slow_to_import"


def test_imports_are_reported_until_something_else_is_done(
    slow: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = _Terminal()
    monkeypatch.setattr(pace, "PACE", 0.001)
    monkeypatch.setattr(sys, "stderr", written)
    line = re.compile(rf"mqlake: loading {slow}, \d+ s")

    def look() -> None:
        wait_until(lambda: len(line.findall(written.getvalue())) >= 2)
        _is_seen.set()

    looking = threading.Thread(target=look)
    looking.start()
    with _reports:
        __import__(slow)
        wait_until(lambda: "notes of progress" not in {one.name for one in threading.enumerate()})
    looking.join()
    assert all(line.fullmatch(each) for each in written.getvalue().splitlines())


def test_nothing_is_reported_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    before = threading.active_count()
    with reported_imports():
        assert threading.active_count() == before
    assert capsys.readouterr().err == ""


def test_a_stack_without_an_import_has_no_package() -> None:
    assert imported_package(sys._getframe()) is None
    assert imported_package(None) is None
