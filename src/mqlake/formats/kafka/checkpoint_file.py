"""Read and write Kafka's checkpoint files (docs/formats/kafka/checkpoint_file.md).

Text: a version, the number of entries, an entry a line. `leader-epoch-checkpoint` of a partition
has `epoch start-offset`; those of a log directory have `topic partition offset`. Kafka:
`CheckpointFile`, `LeaderEpochCheckpointFile`, `OffsetCheckpointFile`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from mqlake.errors import FormatError

LEADER_EPOCHS = "leader-epoch-checkpoint"
RECOVERY_POINTS = "recovery-point-offset-checkpoint"
LOG_START_OFFSETS = "log-start-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
CLEANED_OFFSETS = "cleaner-offset-checkpoint"

VERSION = 0

# More digits than any number here has; Python's own limit is 4300.
_DIGITS = 20


class LeaderEpoch(NamedTuple):
    """The first offset that was written under a leader."""

    epoch: int
    start_offset: int


def decode_leader_epochs(data: bytes) -> list[LeaderEpoch]:
    """Return the entries of a `leader-epoch-checkpoint`; an empty file has none.

    Raises:
        FormatError: another version, or no such text.
    """
    return [LeaderEpoch(_number(epoch), _number(offset)) for epoch, offset in _lines(data, 2)]


def encode_leader_epochs(entries: Sequence[LeaderEpoch]) -> bytes:
    """Return the bytes of a `leader-epoch-checkpoint`."""
    return _encode([f"{entry.epoch} {entry.start_offset}" for entry in entries])


def decode_offsets(data: bytes) -> dict[tuple[str, int], int]:
    """Return the offset of each (topic, partition) of a log directory's checkpoint.

    Kafka makes the file when it starts, and leaves it empty until it has something to say.

    Raises:
        FormatError: another version, or no such text.
    """
    return {
        (topic, _number(partition)): _number(offset) for topic, partition, offset in _lines(data, 3)
    }


def encode_offsets(offsets: Mapping[tuple[str, int], int]) -> bytes:
    """Return the bytes of a log directory's checkpoint."""
    return _encode(
        [f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items()]
    )


def _encode(lines: Sequence[str]) -> bytes:
    return "".join(f"{line}\n" for line in (VERSION, len(lines), *lines)).encode()


def _lines(data: bytes, fields: int) -> list[list[str]]:
    if not data:
        return []
    try:
        lines = data.decode().splitlines()
    except UnicodeDecodeError:
        raise FormatError("a checkpoint that is not text") from None
    if len(lines) < 2 or _number(lines[0].strip()) != VERSION:
        raise FormatError(f"a checkpoint that does not start with version {VERSION} and a count")
    entries = [line.split() for line in lines[2:] if line.strip()]
    if len(entries) != _number(lines[1].strip()):
        raise FormatError(f"a checkpoint with {len(entries)} entries that says {lines[1][:40]!r}")
    for entry in entries:
        if len(entry) != fields:
            raise FormatError(f"a checkpoint's line {' '.join(entry)[:80]!r}")
    return entries


def _number(text: str) -> int:
    digits = text.removeprefix("-")
    if not digits.isascii() or not digits.isdigit() or len(digits) > _DIGITS:
        raise FormatError(f"not a number in a checkpoint: {text[:40]!r}")
    return int(text)
