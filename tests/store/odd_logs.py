"""Logs of records with odd properties, as RocketMQ writes them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mqlake.formats import record
from mqlake.storage.local_owned import LocalOwnedDirectory
from mqlake.store.recovery.recovery import Recovered, recover
from mqlake.store.settings import StoreSettings
from tests.crash.clock import ManualClock
from tests.jobs.model import read_log
from tests.odd_messages import DAMAGED_LOOKING

SEGMENT = 1 << 16

SIZES = {
    "mapped_file_size_commit_log": SEGMENT,
    "mapped_file_size_consume_queue": 400,
    "max_hash_slot_num": 100,
    "max_index_num": 400,
}

SETTINGS = StoreSettings(**SIZES)

PROPERTIES = (*DAMAGED_LOOKING, b"x" * 32000)

IMITATION = record.encode(topic="T", body=b"a body that is a record", properties=b"A\1b\2")
BODIES = (b"", b"body", bytes(600), IMITATION, record.encode_blank_head(100), b"x" * 2000)


def rocketmq_log(store: Path, properties: Sequence[bytes], start: int = 0, base: int = 0) -> int:
    """Append records as RocketMQ does, at a physical offset; return the end."""
    at = start
    (store / "commitlog").mkdir(parents=True, exist_ok=True)
    for number, each in enumerate(properties):
        fields = {
            "topic": "T",
            "body": BODIES[number % len(BODIES)],
            "properties": each,
            "queue_offset": base + number,
            "store_timestamp": 1_700_000_000_000 + number,
        }
        size = len(record.encode(**fields))
        left = SEGMENT - at % SEGMENT
        if left < size + record.FRAME_SIZE:
            _write(store, at, record.encode_blank(left))
            at += left
        _write(store, at, record.encode(**fields, physical_offset=at))
        at += size
    return at


def _write(store: Path, at: int, data: bytes) -> None:
    path = store / "commitlog" / f"{at // SEGMENT * SEGMENT:020d}"
    if not path.exists():
        path.write_bytes(bytes(SEGMENT))
    with path.open("r+b") as file:
        file.seek(at % SEGMENT)
        file.write(data)


def open_store(path: Path, settings: StoreSettings = SETTINGS) -> Recovered:
    return recover(LocalOwnedDirectory(path), settings, ManualClock(1_800_000_000_000))


def stored_properties(path: Path) -> list[bytes]:
    """Return the properties of all records, as they are stored."""
    found: list[bytes] = []
    for each in read_log(path):
        file = path / "commitlog" / f"{each.physical_offset // SEGMENT * SEGMENT:020d}"
        data, at = file.read_bytes(), each.physical_offset % SEGMENT
        _, layout = record.check(data, at, len(data), crc=False)
        assert layout is not None
        found.append(data[layout.properties_at :][: layout.properties_length])
    return found
