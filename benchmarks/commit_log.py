"""Write commit logs to measure on: records as a broker writes them, many at a time with NumPy.

Each record has one key, one tag and a unique key. The records come in rounds of 120, three for
each of 40 queues (5 topics of 8) in a random but fixed order; sizes are spread by a quarter around
`record_size`; bodies are random bytes. The same arguments give the same bytes.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from mqlake.formats import record
from mqlake.formats.file_name import segment_name

TOPICS, QUEUES_EACH = 5, 8
ROUND = 3 * TOPICS * QUEUES_EACH
BEGIN_TIMESTAMP = 1_767_225_600_000
RECORDS_A_MILLISECOND = 100
BLOCK_SIZE = 32 << 20

KEY_DIGITS, UNIQUE_DIGITS = 10, 16
KEY = "key-"
UNIQUE_KEY = "7F0000010001251A"

Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Slot:
    """One of the records of a round: where its parts are in the round's bytes."""

    at: int
    layout: record.Layout
    key_at: int
    unique_key_at: int
    rank: int  # how many records of its queue are before it in the round


@dataclass(frozen=True)
class Log:
    """What was written: `size` in bytes, blank records included."""

    segments: int
    size: int
    records: int


def key(number: int) -> str:
    """Return the key of record `number` of a log."""
    return f"{KEY}{number:0{KEY_DIGITS}d}"


def write_commit_log(
    directory: Path,
    *,
    segment_size: int = 1 << 30,
    segments: int = 1,
    record_size: int = 1024,
    used: int | None = None,
) -> Log:
    """Write `segments` files of `segment_size` bytes into `directory`.

    Each is full of records, or has them in its first `used` bytes and is sparse behind: a blank
    record, as where the next one did not fit.
    """
    directory.mkdir(parents=True)
    template, slots = _round(record_size)
    rounds = ((used or segment_size) - record.FRAME_SIZE) // len(template)
    for segment in range(segments):
        base = segment * segment_size
        with (directory / segment_name(base)).open("wb") as file:
            for block in _blocks(template, slots, base, segment * rounds, rounds):
                file.write(block.data)
            file.write(record.encode_blank_head(segment_size - file.tell()))
            file.truncate(segment_size)
    return Log(segments, segments * segment_size, segments * rounds * ROUND)


def _round(record_size: int) -> tuple[Bytes, list[Slot]]:
    """Return the bytes of a round with its variable parts empty, and where they are."""
    rng = np.random.default_rng(record_size)
    queues = np.concatenate([rng.permutation(TOPICS * QUEUES_EACH) for _ in range(3)])
    spread = np.linspace(-record_size // 4, record_size // 4, ROUND // 2, dtype=np.int64)
    sizes = record_size + rng.permutation(np.concatenate([spread, -spread]))
    bare = len(_record(0, 0))
    parts: list[bytes] = []
    slots: list[Slot] = []
    at = 0
    for place, (queue, size) in enumerate(zip(queues.tolist(), sizes.tolist(), strict=True)):
        data = _record(queue, max(0, size - bare))
        _, layout = record.check(data, 0, len(data))
        assert layout is not None
        slots.append(
            Slot(
                at,
                layout,
                data.index(KEY.encode()) + len(KEY),
                data.index(UNIQUE_KEY.encode()) + len(UNIQUE_KEY),
                int(np.count_nonzero(queues[:place] == queue)),
            )
        )
        parts.append(data)
        at += len(data)
    return np.frombuffer(b"".join(parts), np.uint8), slots


def _record(queue: int, body_length: int) -> bytes:
    return record.encode(
        topic=f"topic-{queue % TOPICS}",
        queue_id=queue // TOPICS,
        body=bytes(body_length),
        born_host="127.0.0.1:40000",
        properties={
            "KEYS": KEY + "0" * KEY_DIGITS,
            "UNIQ_KEY": UNIQUE_KEY + "0" * UNIQUE_DIGITS,
            "WAIT": "true",
            "TAGS": "TagA",
        },
    )


def _blocks(
    template: Bytes, slots: list[Slot], base: int, first_round: int, rounds: int
) -> Iterator[Bytes]:
    rng = np.random.default_rng(base)
    step = max(1, BLOCK_SIZE // len(template))
    for start in range(0, rounds, step):
        numbers = np.arange(start, min(start + step, rounds), dtype=np.int64)
        block = np.tile(template, (len(numbers), 1))
        noise = np.frombuffer(rng.bytes(block.size), np.uint8).reshape(block.shape)
        for place, slot in enumerate(slots):
            _fill(block, noise, slot, place, first_round + numbers, base + numbers * len(template))
        yield block


def _fill(
    block: Bytes,
    noise: Bytes,
    slot: Slot,
    place: int,
    rounds: npt.NDArray[np.int64],
    offsets: npt.NDArray[np.int64],
) -> None:
    """Write what differs from round to round into one record of each round of a block."""
    numbers = rounds * ROUND + place
    times = BEGIN_TIMESTAMP + numbers // RECORDS_A_MILLISECOND
    body_at = slot.at + slot.layout.body_at
    body = slice(body_at, body_at + slot.layout.body_length)
    block[:, body] = noise[:, body]
    rows = block.reshape(-1).data
    starts = range(0, block.size, block.shape[1])
    crcs = [zlib.crc32(rows[at + body.start : at + body.stop]) for at in starts]
    for at, values, dtype in (
        (record.BODY_CRC_AT, np.array(crcs) & record.CRC_MASK, ">i4"),
        (record.QUEUE_OFFSET_AT, 3 * rounds + slot.rank, ">i8"),
        (record.PHYSICAL_OFFSET_AT, offsets + slot.at, ">i8"),
        (record.BORN_TIMESTAMP_AT, times, ">i8"),
        (slot.layout.store_timestamp_at, times, ">i8"),
    ):
        field = values.astype(dtype).view(np.uint8).reshape(len(values), -1)
        block[:, slot.at + at : slot.at + at + field.shape[1]] = field
    for at, digits in ((slot.key_at, KEY_DIGITS), (slot.unique_key_at, UNIQUE_DIGITS)):
        powers = 10 ** np.arange(digits - 1, -1, -1)
        block[:, slot.at + at : slot.at + at + digits] = numbers[:, None] // powers % 10 + ord("0")
