"""What a program reports about itself, for whoever monitors it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Protocol

from mqlake.metrics.loop_lag import LOOP_LAG, LoopLag
from mqlake.metrics.metric import Sample


class Observed(Protocol):
    """A program that is monitored."""

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels of all samples, by name."""
        ...

    def not_ready(self) -> str | None:
        """Return why it cannot be used now, in one line; None if it can."""
        ...

    async def samples(self) -> Sequence[Sample]:
        """Return all samples as they are now."""
        ...


class Collector:
    """Collects the samples of one program, for one caller after another.

    It is created on the program's event loop, whose lag it measures until `stop`.

    Args:
        measures_lag: False if the program's work is not on this event loop.
    """

    def __init__(self, observed: Observed, *, measures_lag: bool = True) -> None:
        self.observed = observed
        self._lag = LoopLag(asyncio.get_running_loop()) if measures_lag else None
        self._turn = asyncio.Lock()

    async def collect(self) -> list[Sample]:
        """Return all samples, and the longest lag since the last call."""
        async with self._turn:
            lag = () if self._lag is None else (Sample(LOOP_LAG, self._lag.take()),)
            return [*lag, *await self.observed.samples()]

    def stop(self) -> None:
        """Stop measuring."""
        if self._lag is not None:
            self._lag.stop()


def labels_of(kind: str, name: str, cluster: str, more: str = "") -> dict[str, str]:
    """Return the labels of all samples of a program.

    Args:
        kind: of the program, such as "broker".
        name: which one it is.
        cluster: its cluster; "" for none.
        more: further labels, such as "zone:a,rack:7" (`metricsLabel`).
    """
    pairs = (pair.partition(":") for pair in more.split(",") if pair)
    own = {"cluster": cluster} if cluster else {}
    return {
        **{name.strip(): value.strip() for name, _, value in pairs},
        **own,
        "node_type": kind,
        "node_id": name,
    }
