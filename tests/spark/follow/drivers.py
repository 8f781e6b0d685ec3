"""Drivers that live once each: the next one starts while the one before it lives."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Self

import msgspec

ROOT = Path(__file__).parents[3]
LONGEST = 300
"""Seconds that a life may take."""


class Kind(msgspec.Struct, frozen=True, order=True):
    """What a table is, besides its place.

    Attributes:
        column: whose values are keys, of which the table has the newest messages; None for all.
    """

    format: str
    column: str | None = None

    def __str__(self) -> str:
        return self.format if self.column is None else f"{self.format} by key"


class Followed(msgspec.Struct, frozen=True):
    """A store, and the table that it is followed into."""

    store: str
    out: str
    kind: Kind


class Life(msgspec.Struct, frozen=True):
    """What a driver follows, and how it dies.

    Attributes:
        seed: draws the moment of its death.
        number: of this life; tells the table at whose commit it dies.
    """

    seed: str
    number: int
    tables: list[Followed]


class Driver:
    """A driver that waits for what it is to follow; see `life`."""

    def __init__(self) -> None:
        self._said: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (closed in `end`)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.spark.follow.life"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=self._said,
        )

    def live(self, seed: int, number: int, tables: Sequence[Followed]) -> None:
        """Let it follow."""
        life = Life(f"{seed}/{number}", number, list(tables))
        assert self.process.stdin is not None
        self.process.stdin.write(msgspec.json.encode(life) + b"\n")
        self.process.stdin.flush()

    @property
    def has_ended(self) -> bool:
        return self._said.closed

    def end(self, seconds: float = 0.0) -> str:
        """Kill it if it lives after some time; return the end of what it said."""
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        if self.process.stdin is not None:
            self.process.stdin.close()
        self._said.seek(0)
        text = self._said.read().decode(errors="replace")
        self._said.close()
        return text[-20_000:]


class Drivers:
    """Starts drivers ahead of time; closing it kills those that live."""

    def __init__(self) -> None:
        self._driver: Driver | None = None
        self._spare: Driver | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for driver in (self._driver, self._spare):
            if driver is not None and not driver.has_ended:
                driver.end()

    def next(self, *, is_last: bool) -> Driver:
        """Return a driver; start the one after it unless it is the last."""
        self._driver = driver = self._spare or Driver()
        self._spare = None if is_last else Driver()
        return driver
