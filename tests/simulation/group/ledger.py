"""What was put to a group, what was acknowledged, and whether a log has it."""

from __future__ import annotations

import random
from typing import NamedTuple

from mqlake.store import Message
from mqlake.store.append.put_result import PutResult, PutStatus
from tests.simulation.group.node import Node

TOPIC = "Orders"
QUEUES = 2


class Acknowledged(NamedTuple):
    """A message that was acknowledged: the physical offsets of its record, and its body."""

    start: int
    end: int
    body: bytes


class Ledger:
    """The messages of one run.

    Attributes:
        sent: how many messages were put.
        count: how many were acknowledged.
        violations: what is wrong, one line each.
    """

    def __init__(self, dice: random.Random, longest: int) -> None:
        self._dice, self._longest = dice, longest
        self._acknowledged: list[Acknowledged] = []
        self._shown: tuple[Node, object, int] | None = None
        self.sent = self.count = 0
        self.violations: list[str] = []

    def message(self) -> Message:
        """Return the next message."""
        number = self.sent
        self.sent += 1
        filler = self._dice.randbytes(self._dice.randrange(self._longest))
        body = b"%d " % number + filler
        return Message(TOPIC, body, queue_id=number % QUEUES, keys=(f"key-{number}",))

    async def put(self, node: Node, count: int) -> None:
        """Put messages to a broker, in its process; note those that it acknowledges."""
        process, store = node.process, node.store
        messages = [self.message() for _ in range(count)]
        results = await store.appends.confirm(store.appends.many(messages))
        if process is None or not process.is_alive or process.is_doomed:
            return
        self.look(node)
        for message, result in zip(messages, results, strict=True):
            if result.status is PutStatus.PUT_OK:
                self._note(result, message)

    def _note(self, result: PutResult, message: Message) -> None:
        self.count += 1
        entry = Acknowledged(result.physical_offset, result.end, bytes(message.body))
        self._acknowledged.append(entry)

    def look(self, node: Node) -> None:
        """Check that what a master shows never becomes less."""
        if not node.is_master:
            return
        confirmed, shown = node.store.watermarks.confirmed, self._shown
        if shown is not None and shown[:2] == (node, node.state) and confirmed < shown[2]:
            self.violations.append(f"{node.name} has shown {shown[2]}, and shows {confirmed} now")
        self._shown = node, node.state, confirmed

    def missing(self, node: Node) -> list[Acknowledged]:
        """Return what was acknowledged and is not in a broker's log, or elsewhere in it."""
        first, end = node.span
        data = node.log(first, end)
        return [
            each
            for each in self._acknowledged
            if each.start >= first and each.body not in data[each.start - first : each.end - first]
        ]

    def forget_missing(self, node: Node) -> None:
        """Count as lost what a broker lacks that has lost what was never durable."""
        for each in self.missing(node):
            self._acknowledged.remove(each)

    def check(self, node: Node) -> None:
        """Check that a master lacks nothing, and has everything in its order."""
        if missing := self.missing(node):
            one = missing[0]
            self.violations.append(
                f"{node.name} lacks {len(missing)} acknowledged messages, the first at"
                f" {one.start}: {one.body[:20]!r}; its log is {node.span}"
            )
        for queue_id in range(QUEUES):
            numbers = _numbers(node, queue_id)
            if numbers != sorted(set(numbers)):
                self.violations.append(f"{node.name}: queue {queue_id} has {numbers}")


def _numbers(node: Node, queue_id: int) -> list[int]:
    """Return the numbers of a queue's messages."""
    reads, found = node.store.reads, []
    at, end = reader_range = reads.queue(TOPIC, queue_id)
    while at < end:
        result = reads.get(TOPIC, queue_id, at, 1000)
        found += [int(record.body.partition(b" ")[0]) for record in result.records]
        if result.next_offset <= at:
            break
        at = result.next_offset
    count = reader_range[1] - reader_range[0]
    return found if len(found) == count else [*found, -1]
