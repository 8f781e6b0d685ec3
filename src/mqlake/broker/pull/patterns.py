"""Patterns: standing pulls of one connection that differ in a queue and in offsets only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

from mqlake.broker.pull.shapes import Shape, answer_shape, request_shape
from mqlake.broker.pull.standing import PullDecision
from mqlake.protocol import binary_header, json_header
from mqlake.protocol.command import Command, Serialization
from mqlake.protocol.frames import LENGTHS
from mqlake.protocol.headers.pull import COMMITS_OFFSET, PullHeader
from mqlake.store.port import CopiedAhead

if TYPE_CHECKING:
    from mqlake.dispatch.batch import Longs

MOST_QUEUES: Final = 128
"""Queues of one pattern."""
_FIELDS: Final[tuple[str, ...]] = ("nextBeginOffset", "minOffset", "maxOffset")
_OTHERS: Final = (7, 123_456_789_012, 0, 77_007), (10_203, 5, 99_999_999_999_999, 2**31 - 1)
"""Numbers with which each new shape is checked."""


class Pattern:
    """Pulls that are alike except for their queue, their offsets and their opaque.

    Attributes:
        kind: the serialization of their headers.
        request, answer: the shapes of their headers and of the answers'.
        decided: what the checks of the first one decided.
        queues: a row for each queue that a pull was checked for: see `run_table`.
        queue_ids: the queue of each row.
        copied: for each row what is copied of the queue.
    """

    def __init__(
        self, kind: int, header: PullHeader, decided: PullDecision, request: Shape, answer: Shape
    ) -> None:
        self.kind, self.decided = int(kind), decided  # Numba takes long to tell an enum from it.
        self.request, self.answer = request, answer
        self.group, self.topic = header.consumer_group, header.topic
        self.commits = bool(header.sys_flag & COMMITS_OFFSET)
        self.queues: Longs = np.empty((0, 3), np.int64)
        self.queue_ids: list[int] = []
        self.copied: list[CopiedAhead | None] = []

    def add(self, queue_id: int) -> bool:
        """Add a queue for which a pull was checked; return whether there was room."""
        if queue_id in self.queue_ids:
            return True
        if len(self.copied) >= MOST_QUEUES:
            return False
        self.queues = np.vstack((self.queues, np.array((queue_id, 0, -1))))
        self.queue_ids.append(queue_id)
        self.copied.append(None)
        return True


def decode(kind: int, data: bytes) -> Command:
    """Return the command of a header.

    Raises:
        FrameError: this is no such header.
    """
    binary = kind == Serialization.ROCKETMQ
    return binary_header.decode(data) if binary else json_header.decode(data)


def pattern_of(
    data: bytes, request: Command, header: PullHeader, decided: PullDecision
) -> Pattern | None:
    """Return the pattern of a pull, given its header's bytes; None if these are not typical."""
    if request.flag:
        return None
    kind = request.serialization
    numbers = (header.queue_id, header.commit_offset, header.queue_offset, request.opaque)
    shape = request_shape(data, kind, numbers)
    if shape is None or not all(
        _is_read_as(shape.fill(others), kind, request, header, others) for others in _OTHERS
    ):
        return None
    fields: dict[str, int] = dict(zip(_FIELDS, _OTHERS[0], strict=False))
    sample = decided.template.fill(*_OTHERS[0])
    answer = answer_shape(sample[LENGTHS.size :], kind, fields, _OTHERS[0][-1])
    if answer is None or not all(
        _headed(kind, answer.fill(others)) == decided.template.fill(*others) for others in _OTHERS
    ):
        return None
    return Pattern(kind, header, decided, shape, answer)


def _headed(kind: int, header: bytes) -> bytes:
    return LENGTHS.pack(len(header) + 4, kind << 24 | len(header)) + header


def _is_read_as(
    data: bytes, kind: int, request: Command, header: PullHeader, numbers: tuple[int, ...]
) -> bool:
    """Return whether a header is read as another one, except for these numbers."""
    queue_id, commit, offset, opaque = numbers
    command = decode(kind, data)
    read = command.header(PullHeader)
    expected = msgspec.structs.replace(
        header, queue_id=queue_id, commit_offset=commit, queue_offset=offset
    )
    same = command.code == request.code and command.flag == request.flag
    return same and command.opaque == opaque and read == expected
