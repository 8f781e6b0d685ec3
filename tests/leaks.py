"""No test shows a password: neither in its output, nor in a log, nor in the list of processes.

Passwords of tests have a form by which they are found: `NAME-password`, `NAME-password-1`,
`secret-of-NAME`, `secret-123` and so on. Whatever mqlake writes while a test runs is searched: what
it prints and logs in the process of the test, the command lines of processes, and their logs.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

PASSWORD = re.compile(
    r"(?<![\w./-])(?:[a-z0-9]+-(?:password|secret)(?:-[a-z0-9]+)?|(?:password|secret)-[a-z0-9-]+)"
    r"(?![\w./-])",
    re.IGNORECASE,
)
LOGS = ("*.log", "log", "stdout", "stderr", "*.out", "*.err")
"""Names of the files to which processes of tests write what they print."""
_MOST = 1 << 24
"""Bytes of a file that are searched, at its end."""

_commands: list[str] = []


def leaked(text: str) -> str | None:
    """Return the first password in a text with what is around it; None without one."""
    found = PASSWORD.search(text)
    if found is None:
        return None
    return text[max(0, found.start() - 100) : found.end() + 50]


def _note_command(event: str, given: tuple[Any, ...]) -> None:
    """Note the command line of a process that runs mqlake."""
    if event == "subprocess.Popen":
        words = given[1] if isinstance(given[1], list | tuple) else [given[1]]
        words = [each.decode() if isinstance(each, bytes) else str(each) for each in words]
        runs_mqlake = any(Path(each).name.partition(".")[0] == "mqlake" for each in words)
        if runs_mqlake and PASSWORD.search(" ".join(words)):
            _commands.append(" ".join(words))


def pytest_configure() -> None:
    """Note the command lines from now on."""
    sys.addaudithook(_note_command)


def _logs(directory: Path) -> Iterator[tuple[str, str]]:
    for name in LOGS:
        for path in directory.rglob(name):
            if path.is_file() and not path.stem.isdecimal():  # RocksDB's logs of changes.
                with path.open("rb") as file:
                    file.seek(max(0, path.stat().st_size - _MOST))
                    yield str(path), file.read().decode(errors="replace")


def _outputs(item: pytest.Item, report: pytest.TestReport) -> Iterable[tuple[str, str]]:
    yield from report.sections
    commands, _commands[:] = list(_commands), []
    yield from (("command line", each) for each in commands)
    directory = getattr(item, "funcargs", {}).get("tmp_path")
    if report.when == "call" and directory is not None:
        yield from _logs(directory)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Let a test fail that shows a password."""
    report = yield
    if report.passed:
        for where, text in _outputs(item, report):
            if (found := leaked(text)) is not None:
                report.outcome = "failed"
                report.longrepr = f"a password is in {where}: …{found}…"
                break
    return report
