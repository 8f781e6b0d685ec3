"""Small commit logs for tests, and what a scan says of them as plain values."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any, NamedTuple

from mqlake.dispatch.gap import Gap
from mqlake.dispatch.kernel import Kernel
from mqlake.dispatch.scan import SegmentScan, Want
from mqlake.formats import record
from mqlake.formats.dialect import Dialect
from mqlake.formats.record import Fault
from mqlake.storage.memory import MemoryFile

V4_HOST, V6_HOST = "127.0.0.1:10911", "[2001:db8:0:0:0:0:0:1]:40000"


def encode(physical_offset: int = 0, **fields: Any) -> bytes:
    """Return a record; what is not given has some value."""
    values: dict[str, Any] = {
        "topic": "Topic",
        "queue_id": 0,
        "queue_offset": 0,
        "sys_flag": 0,
        "flag": 0,
        "born_timestamp": 1_700_000_000_000,
        "born_host": V4_HOST,
        "store_timestamp": 1_700_000_000_001,
        "store_host": V4_HOST,
        "reconsume_times": 0,
        "prepared_transaction_offset": 0,
        "properties": {},
        "body": b"body",
    }
    return record.encode(physical_offset=physical_offset, **(values | fields))


def log(fields: Iterable[dict[str, Any]], base: int = 0) -> bytes:
    """Return records with these fields, one after the other from physical offset `base` on."""
    data = bytearray()
    for each in fields:
        data += encode(base + len(data), **each)
    return bytes(data)


def random_fields(chance: random.Random, longest_body: int = 300) -> dict[str, Any]:
    """Return fields of a record that has something special about it."""
    text = chance.choice(["T", "Tag", "日本語", "é" * 9, "k" * 40, "😀😀", "a b  c "])
    properties = {
        "KEYS": chance.choice([f"k{chance.random()}", "a  b c ", " ", "日本 語", "x" * 100]),
        "TAGS": text,
        "UNIQ_KEY": f"{chance.getrandbits(128):032X}",
        "DELAY": chance.choice(["3", "+2", "-1", "99", "x", "2147483648", "0000000000004"]),
        "other": "y" * chance.randrange(1, 90),
    }
    kept = chance.sample(list(properties), chance.randrange(len(properties) + 1))
    return {
        "topic": chance.choice(["Topic", "SCHEDULE_TOPIC_XXXX", "L" * 200, "日本", "a" * 64, "b"]),
        "queue_id": chance.randrange(4),
        "queue_offset": chance.randrange(1 << 40),
        "sys_flag": chance.choice([0, 0, 0, 4, 8, 12, 2, 3]),
        "born_host": chance.choice([V4_HOST, V6_HOST]),
        "store_host": chance.choice([V4_HOST, V6_HOST]),
        "store_timestamp": 1_700_000_000_000 + chance.randrange(1 << 30),
        "properties": {name: properties[name] for name in kept},
        "body": chance.randbytes(chance.choice([0, 1, 15, 16, 17, chance.randrange(longest_body)])),
    }


def random_log(seed: int, records: int, base: int = 0) -> bytes:
    """Return a log of records of all kinds."""
    chance = random.Random(seed)
    return log((random_fields(chance) for _ in range(records)), base)


class Seen(NamedTuple):
    """All that a scan says, as plain values."""

    records: list[dict[str, Any]]
    keys: list[list[int]]
    gaps: list[Gap]
    queues: list[tuple[bytes, int]]
    start: int
    stop: int

    @property
    def offsets(self) -> list[int]:
        return [row["physical_offset"] for row in self.records]


def scan(
    data: bytes,
    kernel: Kernel | None = None,
    start: int | None = None,
    end: int | None = None,
    *,
    base: int = 0,
    exact: bool = True,
    crc: bool = True,
    want: Want = Want.DISPATCH,
    dialect: Dialect = Dialect.V5_5,
    limit: int | None = None,
    window: int = 1 << 16,
) -> Seen:
    """Scan `data` as a segment at `base`. Positions become texts: they depend on the windows."""
    steps = SegmentScan(
        MemoryFile(data),
        base,
        base if start is None else start,
        base + len(data) if end is None else end,
        exact=exact,
        crc=crc,
        want=want,
        dialect=dialect,
        limit=limit,
        window=window,
        kernel=kernel,
    )
    records: list[dict[str, Any]] = []
    keys: list[list[int]] = []
    for batch in steps:
        for row in batch.records:
            values = dict(zip(row.dtype.names, row.tolist(), strict=True))
            if want is Want.LOCATE:
                values = {name: values[name] for name in ("physical_offset", "size", "fault")}
            else:
                first = values.pop("key_start")
                rows = batch.keys[first : first + values.pop("key_count")]
                keys.append(rows["hash"].tolist())
                for name in ("body", "topic", "properties", "keys", "tags", "unique_key"):
                    at = values.pop(f"{name}_at")
                    length = values.pop(f"{name}_length")
                    values[name] = batch.buffer[at : at + length].tobytes()
            records.append(values)
    return Seen(records, keys, steps.gaps, list(steps.table), steps.start, steps.stop)


def damage(seen: Seen) -> list[tuple[int, int, Fault]]:
    """Return offset, length and fault of each gap."""
    return [(gap.physical_offset, gap.length, gap.fault) for gap in seen.gaps]


def assert_covered(seen: Seen) -> None:
    """Check that records and gaps lie one behind the other, from start to stop."""
    stretches = [(row["physical_offset"], row["size"]) for row in seen.records]
    stretches += [(gap[0], gap[1]) for gap in seen.gaps if gap.fault is not Fault.CRC]
    at = seen.start
    for offset, size in sorted(stretches):
        assert offset == at
        at += size
    assert at == seen.stop
