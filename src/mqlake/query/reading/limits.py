"""The queues that a query reads, and where it starts and ends in them, according to options."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

import msgspec

from mqlake.errors import FormatError
from mqlake.query.reading import queue_json
from mqlake.query.reading.queue_json import EARLIEST as EARLIEST_OFFSET
from mqlake.query.reading.queue_json import LATEST as LATEST_OFFSET

EARLIEST, LATEST = "earliest", "latest"

_STRATEGIES = ("assign", "subscribe", "subscribePattern")


Q = TypeVar("Q", bound=tuple[Any, ...])
"""The name of a queue: a topic and a queue id, or with a broker in between."""


def limit(
    *named: str, offsets: Callable[[str], dict[Q, int]] = queue_json.offsets
) -> Callable[[str], str | dict[Q, int]]:
    """Accept one of a few words, or an offset for each queue as JSON."""

    def parse(value: str) -> str | dict[Q, int]:
        if value.lower() in named:
            return value.lower()
        if value.startswith("{"):
            return offsets(value)
        raise ValueError(f'{" or ".join(named)}, or JSON such as {{"TopicA": {{"0": 23}}}}')

    return parse


class Limit(msgspec.Struct, Generic[Q], frozen=True):
    """Where queues start or end. The first of these that is given counts, as in the Kafka source.

    Attributes:
        timestamp: a store time (ms) for all queues.
        timestamps: one for each named queue.
        offsets: an offset for each named queue, -2 and -1 for earliest and latest.
        word: "earliest" or "latest", if none of the others is given.
    """

    timestamp: int | None
    timestamps: dict[Q, int] | None
    offsets: dict[Q, int] | None
    word: str

    @property
    def queues(self) -> list[Q]:
        """The queues that are named."""
        if self.timestamp is not None:
            return []
        return list(self.timestamps or self.offsets or ())


def limit_of(values: Mapping[str, Any], side: str, default: str) -> Limit[Any]:
    """Return the limits that the options of a side, "starting" or "ending", define."""
    timestamp, timestamps = values[f"{side}Timestamp"], values[f"{side}OffsetsByTimestamp"]
    offsets = values[f"{side}Offsets"]
    if timestamp is not None:
        return Limit(timestamp, None, None, default)
    if timestamps is not None:
        return Limit(None, timestamps, None, default)
    if isinstance(offsets, str):
        return Limit(None, None, None, offsets)
    return Limit(None, None, offsets, default)


def check_limits(
    starting: Limit[Q], ending: Limit[Q], given: Mapping[str, str], *, streaming: bool
) -> None:
    """Check where a query starts and ends.

    Raises:
        FormatError: a batch query would end before it starts, or a streaming query has an end.
    """
    if streaming:
        for name in given:
            if name.lower().startswith("ending"):
                raise FormatError(
                    f"option {name}: a streaming query has no end: leave it out, or use spark.read"
                )
        return
    if starting.word == LATEST:
        raise FormatError(
            "startingOffsets: a batch query cannot start at the latest offset: leave it out, or "
            "use spark.readStream"
        )
    for queue, offset in (starting.offsets or {}).items():
        if offset == LATEST_OFFSET:
            raise FormatError(
                f"startingOffsets: {queue_text(queue)}: a batch query cannot start at the latest"
            )
    for queue, offset in (ending.offsets or {}).items():
        if offset == EARLIEST_OFFSET:
            raise FormatError(
                f"endingOffsets: {queue_text(queue)}: a batch query cannot end at the earliest"
            )
    for queue, first in (starting.offsets or {}).items():
        last = (ending.offsets or {}).get(queue, LATEST_OFFSET)
        if 0 <= last < first:
            raise FormatError(
                f"startingOffsets: {queue_text(queue)} would start at {first}, after its end "
                f"at {last}"
            )


def queue_text(queue: tuple[Any, ...]) -> str:
    """Return a readable name of a queue: `TopicA-0`, `TopicA-broker-a-0`."""
    return "-".join(str(part) for part in queue if part != "")


def check_one_strategy(values: Mapping[str, Any]) -> None:
    """Check that at most one option names the queues of a query.

    Raises:
        FormatError: several options name them.
    """
    given = [name for name in _STRATEGIES if values[name] is not None]
    if len(given) > 1:
        raise FormatError(f"options {' and '.join(given)} cannot be combined: give only one")


def check_triggers(least: int | None, most: int | None) -> None:
    """Check the minimum of offsets in a micro-batch against the maximum.

    Raises:
        FormatError: the minimum exceeds the maximum.
    """
    if least is not None and most is not None and least > most:
        raise FormatError(f"minOffsetsPerTrigger ({least}) is above maxOffsetsPerTrigger ({most})")
