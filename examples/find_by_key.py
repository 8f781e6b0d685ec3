"""Print the messages with a key: `python examples/find_by_key.py STORE TOPIC KEY`."""

from __future__ import annotations

import sys

from mqlake.store import StoreReader


def main(store: str, topic: str, key: str) -> None:
    """Ask the index; what it lacks after a crash, the reader finds in the commit log."""
    with StoreReader.open(store) as reader:
        found = reader.by_key(topic, key, max=10)
    for record in found.records:
        print(record.message_id, record.store_timestamp, record.keys, record.body[:40])
    if found.truncated:
        print("there are more")


if __name__ == "__main__":
    main(*sys.argv[1:])
