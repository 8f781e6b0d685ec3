"""Print every message of a topic, queue by queue: `python examples/read_topic.py STORE TOPIC`."""

from __future__ import annotations

import sys

from mqlake.store import StoreReader


def main(store: str, topic: str) -> None:
    """Read each queue from its first offset on, a hundred messages at a time."""
    with StoreReader.open(store) as reader:
        for queue in reader.queues(topic):
            offset, end = reader.queue(topic, queue)
            while offset < end:
                found = reader.get(topic, queue, offset, max=100)
                for record in found.records:
                    print(queue, record.queue_offset, record.tags, record.keys, len(record.body))
                offset = found.next_offset


if __name__ == "__main__":
    main(*sys.argv[1:])
