"""Read and write the epoch file (docs/formats/epoch_file.md).

An epoch is the term of one master. The file says at which physical offset each of them begins.
Upstream: `EpochFileCache`, `CheckpointFile`.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import NamedTuple

from mqlake.errors import FormatError

NAME = "epochFileCheckpoint"
BACKUP = f"{NAME}.bak"
MOST_EPOCHS = 100_000
LARGEST = 4 << 20
"""Bytes of a file that is read at most."""
_NOT_CHECKED = 0
_LAST_EPOCH, _LAST_OFFSET = (1 << 31) - 1, (1 << 63) - 1


class Epoch(NamedTuple):
    """The term of one master.

    Attributes:
        number: which one; later ones have larger numbers.
        start: physical offset of the first byte that its master wrote.
    """

    number: int
    start: int


def encode(epochs: Sequence[Epoch]) -> bytes:
    """Return the content of a file with these epochs."""
    lines = "".join(f"{each.number}-{each.start}\n" for each in epochs).encode()
    return b"%d\n%d\n%s" % (len(epochs), _checksum(lines), lines)


def decode(data: bytes) -> list[Epoch]:
    """Return the epochs in a file, ascending.

    Raises:
        FormatError: the file is damaged.
    """
    head = data.split(b"\n", 2)
    if len(head) < 3:
        raise FormatError("the epoch file ends within its first two lines")
    count, checksum = _number(head[0]), _number(head[1])
    lines = head[2]
    if checksum not in (_NOT_CHECKED, _checksum(lines)):
        raise FormatError(f"the epoch file's checksum is {checksum}, and not {_checksum(lines)}")
    epochs = [_epoch(line) for line in lines.splitlines() if line]
    if len(epochs) != count or count > MOST_EPOCHS:
        raise FormatError(f"the epoch file says that it has {count} epochs, and has {len(epochs)}")
    check(epochs)
    return epochs


def check(epochs: Sequence[Epoch]) -> None:
    """Check that epochs can be those of one log.

    Raises:
        FormatError: their numbers do not ascend, or their offsets descend, or one is out of range.
    """
    before = Epoch(-1, 0)
    for each in epochs:
        if not before.number < each.number <= _LAST_EPOCH:
            raise FormatError(f"epoch {each.number} follows epoch {before.number}")
        if not before.start <= each.start <= _LAST_OFFSET:
            raise FormatError(f"epoch {each.number} begins at physical offset {each.start}")
        before = each


def _epoch(line: bytes) -> Epoch:
    number, found, start = line.partition(b"-")
    if not found:
        raise FormatError(f"not an epoch: {line[:50]!r}")
    return Epoch(_number(number), _number(start))


def _number(text: bytes) -> int:
    text = text.strip()
    if not text.isdigit() or len(text) > len(str(_LAST_OFFSET)):
        raise FormatError(f"not a number of an epoch file: {text[:50]!r}")
    return int(text)


def _checksum(lines: bytes) -> int:
    return zlib.crc32(lines) & 0x7FFFFFFF
