"""Lines are read ahead, in blocks, and their thread ends silently with the program's loop."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from mqlake.cli.lines import Lines, open_lines

LINE = b"x" * 99
COUNT = 20_000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "lines"
    path.write_bytes((LINE + b"\r\n") * COUNT + b"the last")
    return path


def test_all_lines_are_read(path: Path) -> None:
    async def read() -> list[bytes]:
        found: list[bytes] = []
        with open_lines(path) as lines:
            while some := await lines.next(1000):
                found += some
        return found

    assert asyncio.run(read()) == [LINE] * COUNT + [b"the last"]


@pytest.mark.parametrize("taken", [0, 1, COUNT // 2])
def test_a_program_that_ends_early_prints_nothing(
    path: Path, taken: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    complaints: list[object] = []
    monkeypatch.setattr(threading, "excepthook", complaints.append)

    async def read(file: int) -> None:
        lines = Lines(file)
        for _ in range(taken):
            await lines.next(1)

    with path.open("rb") as file:
        asyncio.run(read(file.fileno()))
        for thread in threading.enumerate():
            if thread.name == "lines":
                thread.join(0.2)  # It may wait for ever to hand over what nobody takes.
    assert not complaints


def test_an_unreadable_file_is_an_error(tmp_path: Path) -> None:
    async def read() -> None:
        with (tmp_path / "lines").open("wb") as file:
            await Lines(file.fileno()).next(1)

    with pytest.raises(OSError, match="Bad file descriptor"):
        asyncio.run(read())
