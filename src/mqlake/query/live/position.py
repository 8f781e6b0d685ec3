"""The position of a streaming query on a cluster, as Spark writes it into its checkpoint.

    {"TopicA": {"broker-a": {"0": 23}}, "#marks": {"TopicA": {"broker-a": {"0": [4096, 1700…]}}}}

The next queue offset of each queue, by topic, broker and queue id, as in rocketmq-spark. The marks
distinguish the message before it from any other one: its physical offset and its store timestamp.
No topic name contains `#`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from mqlake.errors import StoreError
from mqlake.protocol.bodies.message_queue import MessageQueue
from mqlake.query.live.brokers import Mark, queue_order

Offsets = Mapping[MessageQueue, int]
"""The next offset of each queue."""

Marks = Mapping[MessageQueue, Mark]

_MARKS = "#marks"

V = TypeVar("V")

_Tree = dict[str, dict[str, dict[int, V]]]


class LivePosition(msgspec.Struct, frozen=True):
    """The next offsets of a query, and the marks of the messages before them, if known."""

    offsets: Offsets
    marks: Marks = {}

    @classmethod
    def read(cls, written: dict[str, Any]) -> LivePosition:
        """Return the position of a checkpoint.

        Raises:
            StoreError: the checkpoint is not one of this source.
        """
        others = {name: value for name, value in written.items() if name != _MARKS}
        try:
            offsets = msgspec.convert(others, _Tree[int], strict=False)
            marks = msgspec.convert(written.get(_MARKS, {}), _Tree[Mark], strict=False)
        except msgspec.ValidationError as error:
            raise StoreError(f"the checkpoint is not one of a running cluster: {error}") from None
        return cls(_flat(offsets), _flat(marks))

    def write(self) -> dict[str, Any]:
        """Return the text for Spark's checkpoint."""
        marks = {queue: list(mark) for queue, mark in self.marks.items()}
        written: dict[str, Any] = _tree(self.offsets)
        return {**written, _MARKS: _tree(marks)} if marks else written


def _flat(tree: _Tree[V]) -> dict[MessageQueue, V]:
    return {
        MessageQueue(topic, broker, queue_id): value
        for topic, brokers in tree.items()
        for broker, queues in brokers.items()
        for queue_id, value in queues.items()
    }


def _tree(values: Mapping[MessageQueue, V]) -> dict[str, dict[str, dict[str, V]]]:
    found: dict[str, dict[str, dict[str, V]]] = {}
    for queue in sorted(values, key=queue_order):
        of_topic = found.setdefault(queue.topic, {})
        of_topic.setdefault(queue.broker_name, {})[str(queue.queue_id)] = values[queue]
    return found
