"""What was measured of a request, or of work that no request asked for."""

from __future__ import annotations

from typing import NamedTuple

from tests.budget.meter import Piece


class Measured(NamedTuple):
    """A request, its longest piece of work, and all of its work.

    Attributes:
        name: of the request or the work.
        longest: in seconds of this machine.
        total: seconds of this machine.
        size: bytes of the answer.
        slowness: how many times as long as intended this machine took then (`meter.scale`).
    """

    name: str
    longest: Piece
    total: float
    size: int
    slowness: float

    @property
    def milliseconds(self) -> float:
        """The longest piece, as the intended machine would take."""
        return self.longest.seconds / self.slowness * 1000

    @property
    def in_all(self) -> float:
        """Milliseconds of all work, as the intended machine would take."""
        return self.total / self.slowness * 1000
