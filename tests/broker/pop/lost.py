"""Pops whose client is lost while the broker reads."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mqlake.broker.pop.reading import PopRead, Reading, Taken
from mqlake.remoting import slices
from mqlake.remoting.slices import Job


def lose_after_reading(
    monkeypatch: pytest.MonkeyPatch,
    lose: Callable[[], object],
    meanwhile: Callable[[], Job[None]] = lambda: iter(()),  # pyright: ignore[reportArgumentType]
) -> None:
    """Call a function once, as soon as a pop has read messages and has not answered them.

    Args:
        meanwhile: what happens between both.
    """
    real, is_lost = Reading.take, False

    def take(self: Reading, wanted: PopRead, topic: str, queue_id: int, taken: Taken) -> Job[None]:
        nonlocal is_lost
        yield from real(self, wanted, topic, queue_id, taken)
        if taken.bodies and not is_lost:
            is_lost = True
            yield from meanwhile()
            lose()

    monkeypatch.setattr(Reading, "take", take)


def read_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each step of a job that may take long be in a round of the loop of its own."""
    monkeypatch.setattr(slices, "TURN", 0.0)
