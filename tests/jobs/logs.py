"""Commit logs made for a test, record by record."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mqlake.formats import record, sys_flag
from mqlake.formats.file_name import segment_name

SEGMENT = 1 << 16
TIME = 1_700_000_000_000


class LogWriter:
    """Append records to the commit log of a new store, rolling segments as RocketMQ does."""

    def __init__(self, store: Path, segment: int = SEGMENT, start: int = 0) -> None:
        self.store = store
        self.segment = segment
        self.offsets: list[int] = []
        self._base = start
        self._data = bytearray()
        self._next: dict[tuple[str, int], int] = {}
        (store / "commitlog").mkdir(parents=True)

    @property
    def end(self) -> int:
        """Physical offset of the next record, if it fits."""
        return self._base + len(self._data)

    def add(self, topic: str = "Topic", queue_id: int = 0, **fields: Any) -> int:
        """Append a record; return its physical offset. Queue offsets count up by themselves."""
        queue = (topic, queue_id)
        fields.setdefault("queue_offset", self._next.get(queue, 0))
        if sys_flag.is_queued(fields.get("sys_flag", 0)):
            self._next[queue] = fields["queue_offset"] + 1
        fields.setdefault("store_timestamp", TIME + 10 * len(self.offsets))
        fields.setdefault("body", b"body %d" % len(self.offsets))
        fields.setdefault("properties", {"UNIQ_KEY": f"U{len(self.offsets)}", "KEYS": "a b"})
        size = len(record.encode(topic=topic, **fields))
        if len(self._data) + size + record.FRAME_SIZE > self.segment:
            self.roll()
        offset = self.end
        self._data += record.encode(
            topic=topic, queue_id=queue_id, physical_offset=offset, **fields
        )
        self.offsets.append(offset)
        return offset

    def forget(self, topic: str) -> None:
        """Let the queues of a topic begin at queue offset 0 again, as after its deletion."""
        self._next = {queue: offset for queue, offset in self._next.items() if queue[0] != topic}

    def raw(self, data: bytes) -> int:
        """Append bytes that are no record; return their physical offset."""
        offset = self.end
        self._data += data
        return offset

    def roll(self) -> None:
        """End the segment with a blank record, and begin the next."""
        self._data += record.encode_blank(self.segment - len(self._data))
        self._flush()
        self._base += self.segment
        self._data = bytearray()

    def roll_out_of_recovery(self) -> None:
        """Append segments with a record each: a clean start looks at the last three only."""
        for _ in range(3):
            self.roll()
            self.add()

    def close(self) -> Path:
        """Write the last segment, its rest a hole; return the store."""
        self._flush()
        return self.store

    def _flush(self) -> None:
        with (self.store / "commitlog" / segment_name(self._base)).open("wb") as file:
            file.write(self._data)
            file.truncate(self.segment)


def change(store: Path, offset: int, data: bytes, segment: int = SEGMENT) -> None:
    """Write bytes over a commit log at a physical offset."""
    base = offset // segment * segment
    with (store / "commitlog" / segment_name(base)).open("r+b") as file:
        file.seek(offset - base)
        file.write(data)
