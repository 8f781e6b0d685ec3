"""Make small stores in memory, with files of any size; what a test breaks is its own business."""

from __future__ import annotations

import struct
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

from mqlake.formats import checkpoint, consume_queue, index_file, record
from mqlake.formats.checkpoint import Checkpoint
from mqlake.formats.consume_queue import ENTRY_SIZE, QueueEntry
from mqlake.formats.dialect import Dialect
from mqlake.formats.file_name import segment_name
from mqlake.formats.java_string import hash_code, index_key_hash
from mqlake.formats.record import FRAME_SIZE

START = 1_700_000_000_000


class Message(NamedTuple):
    topic: str
    queue_id: int
    queue_offset: int
    physical_offset: int
    size: int
    time: int
    properties: dict[str, str]


class StoreMaker:
    """Append messages, then take the files."""

    def __init__(self, segment_size: int = 4096, start: int = 0) -> None:
        self.segment_size = segment_size
        self.start = self.end = start
        self.messages: list[Message] = []
        self.sys_flag = 0
        """The system flag of messages that are appended from now on."""
        self._log = bytearray()
        self.next_offsets: dict[tuple[str, int], int] = defaultdict(int)

    def append(
        self,
        topic: str = "T",
        queue_id: int = 0,
        time: int = START,
        body: bytes = b"body",
        queue_offset: int | None = None,
        **properties: str,
    ) -> Message:
        if queue_offset is None:
            queue_offset = self.next_offsets[topic, queue_id]
        self.next_offsets[topic, queue_id] = queue_offset + 1
        data = self._encode(topic, queue_id, queue_offset, time, body, properties)
        room = -len(self._log) % self.segment_size or self.segment_size
        if len(data) + FRAME_SIZE > room:
            self._log += record.encode_blank(room)
            data = self._encode(topic, queue_id, queue_offset, time, body, properties)
        at = self.start + len(self._log)
        self._log += data
        self.end = at + len(data)
        message = Message(topic, queue_id, queue_offset, at, len(data), time, properties)
        self.messages.append(message)
        return message

    def _encode(self, topic, queue_id, queue_offset, time, body, properties) -> bytes:
        return record.encode(
            topic=topic,
            queue_id=queue_id,
            queue_offset=queue_offset,
            physical_offset=self.start + len(self._log),
            store_timestamp=time,
            born_timestamp=time,
            body=body,
            properties=properties,
            sys_flag=self.sys_flag,
        )

    def log_files(self) -> dict[str, bytes]:
        found: dict[str, bytes] = {}
        for at in range(0, len(self._log) or 1, self.segment_size):
            data = bytes(self._log[at : at + self.segment_size]).ljust(self.segment_size, b"\0")
            found[f"commitlog/{segment_name(self.start + at)}"] = data
        return found

    def queue_files(self, file_size: int = 200) -> dict[str, bytes]:
        """Return the queue files as RocketMQ would have written them."""
        found: dict[str, bytearray] = {}
        for one in self.messages:
            at = one.queue_offset * ENTRY_SIZE
            base = at // file_size * file_size
            path = f"consumequeue/{one.topic}/{one.queue_id}/{segment_name(base)}"
            if path not in found:
                found[path] = bytearray(file_size)
                is_first = not any(
                    p.startswith(path.rpartition("/")[0]) for p in found if p != path
                )
                if is_first:
                    blank = consume_queue.encode(consume_queue.BLANK_ENTRY)
                    found[path][: at - base] = blank * ((at - base) // ENTRY_SIZE)
            tags = one.properties.get("TAGS")
            entry = QueueEntry(one.physical_offset, one.size, hash_code(tags) if tags else 0)
            found[path][at - base : at - base + ENTRY_SIZE] = consume_queue.encode(entry)
        return {path: bytes(data) for path, data in found.items()}

    def index_files(
        self, slots: int = 10, max_entries: int = 40, dialect: Dialect = Dialect.V5_5
    ) -> dict[str, bytes]:
        """Return the index files, entry by entry as `IndexFile.putKey` puts them."""
        files: list[bytearray] = []
        header = [0, 0, 0, 0, 0, max_entries]
        for one in self.messages:
            for text in index_file.index_keys(one.topic, one.properties, dialect):
                if header[5] >= max_entries:
                    files.append(bytearray(index_file.file_size(slots, max_entries)))
                    header = [one.time, 0, one.physical_offset, 0, 0, 1]
                hashed = index_key_hash(text)
                slot_at = index_file.slot_at(slots, hashed)
                (previous,) = struct.unpack_from(">i", files[-1], slot_at)
                seconds = index_file.seconds_since(header[0], one.time)
                struct.pack_into(
                    ">iqii",
                    files[-1],
                    index_file.entry_at(slots, header[5]),
                    hashed,
                    one.physical_offset,
                    seconds,
                    previous,
                )
                struct.pack_into(">i", files[-1], slot_at, header[5])
                header[1], header[3] = one.time, one.physical_offset
                header[4] += previous == 0
                header[5] += 1
                struct.pack_into(">4q2i", files[-1], 0, *header)
        return {f"index/{20261120203000000 + n}": bytes(data) for n, data in enumerate(files)}

    def files(
        self,
        *,
        queue_file_size: int = 200,
        slots: int = 10,
        max_entries: int = 40,
        dialect: Dialect = Dialect.V5_5,
    ) -> dict[str, bytes]:
        last = self.messages[-1] if self.messages else None
        known = Checkpoint(last.time, last.time, last.time) if last else Checkpoint()
        return {
            **self.log_files(),
            **self.queue_files(queue_file_size),
            **self.index_files(slots, max_entries, dialect),
            "checkpoint": checkpoint.encode(known, Dialect.V4_9),
        }


def write(files: dict[str, bytes], to: Path) -> Path:
    """Write files below a directory."""
    for path, data in files.items():
        (to / path).parent.mkdir(parents=True, exist_ok=True)
        (to / path).write_bytes(data)
    return to
