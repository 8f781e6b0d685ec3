"""How many of the new messages a micro-batch takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeVar

from mqlake.storage.clock import SystemClock

Q = TypeVar("Q")


class _TriggerOptions(Protocol):
    @property
    def max_offsets_per_trigger(self) -> int | None: ...
    @property
    def min_offsets_per_trigger(self) -> int | None: ...
    @property
    def max_trigger_delay(self) -> int: ...


class Trigger:
    """Decides where micro-batches end, by the options of a query."""

    def __init__(self, options: _TriggerOptions) -> None:
        self._options = options
        self._last_batch = 0.0

    def admit(self, starts: Mapping[Q, int], ends: Mapping[Q, int], *, waits: bool) -> dict[Q, int]:
        """Return where the next micro-batch ends in each queue.

        Args:
            waits: whether `minOffsetsPerTrigger` applies.
        """
        least, most = self._options.min_offsets_per_trigger, self._options.max_offsets_per_trigger
        count = sum(ends.values()) - sum(starts.values())
        if least and waits and not self._has_waited() and count < least:
            return dict(starts)
        return dict(ends) if most is None else share(starts, ends, most)

    def began(self) -> None:
        """Note that a micro-batch begins."""
        self._last_batch = SystemClock().monotonic()

    def _has_waited(self) -> bool:
        waited = (SystemClock().monotonic() - self._last_batch) * 1000
        return not self._last_batch or waited >= self._options.max_trigger_delay


def share(starts: Mapping[Q, int], ends: Mapping[Q, int], most: int) -> dict[Q, int]:
    """Return ends with at most `most` offsets, shared in proportion to what each queue has."""
    waiting = {name: end - starts[name] for name, end in ends.items()}
    total = sum(waiting.values())
    if total <= most:
        return dict(ends)
    room = most
    found: dict[Q, int] = {}
    # The remainder of rounding goes to the last queues, which have the most.
    for name in sorted(waiting, key=lambda name: waiting[name]):
        share = 0 if not total else room * waiting[name] // total
        found[name] = starts[name] + share
        room, total = room - share, total - waiting[name]
    return found
