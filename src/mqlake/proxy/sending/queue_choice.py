"""Which queue a message is sent to (upstream: `SendMessageQueueSelector`)."""

from __future__ import annotations

from itertools import count
from typing import Final, NamedTuple

from mqlake.formats.java_string import hash_code
from mqlake.grpc.messages import Code
from mqlake.proxy.brokers.port import Destination
from mqlake.proxy.errors import StatusError

_MULTIPLIER: Final = 2862933555777941757
_MASK: Final = (1 << 64) - 1
_RANGE: Final = 1 << 31


class ChosenQueue(NamedTuple):
    """A queue of one broker."""

    broker: str
    queue_id: int


class TargetChoice:
    """Chooses queues: one after the other, or by the message group."""

    def __init__(self) -> None:
        self._turns = count()

    def choose(self, destination: Destination, group: str) -> ChosenQueue:
        """Return the queue for a message.

        Args:
            group: messages with the same group go to the same queue; "" for none.

        Raises:
            StatusError: FORBIDDEN: no queue of the topic can be written.
        """
        total = sum(queues for _, queues in destination.queues)
        if total <= 0:
            raise StatusError(Code.FORBIDDEN, "no writable queue")
        at = consistent_hash(hash_code(group), total) if group else next(self._turns) % total
        for broker, queues in destination.queues:
            if at < queues:
                return ChosenQueue(broker, at)
            at -= queues
        raise AssertionError


def consistent_hash(value: int, buckets: int) -> int:
    """Return the bucket of a value: another one for few values if there are more buckets.

    Jump consistent hash, as Guava computes it: RocketMQ's own proxy chooses the same queues.

    Args:
        value: a signed number of 32 bits.
    """
    state, candidate = value & _MASK, 0
    while True:
        state = (state * _MULTIPLIER + 1) & _MASK
        following = int((candidate + 1) / (((state >> 33) + 1) / _RANGE))
        if not 0 <= following < buckets:
            return candidate
        candidate = following
