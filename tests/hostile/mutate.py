"""Change bytes as broken disks and attackers do."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple

NUMBERS = tuple(
    sorted(
        {0, 1, 2, 3, 7, 8, 19, 20, 40, 90, 91, 4095, 4096}
        | {1 << bits for bits in (7, 8, 15, 16, 24, 31, 32, 62, 63)}
        | {(1 << bits) - 1 for bits in (7, 8, 15, 16, 24, 31, 32, 62, 63, 64)}
        | {(1 << 64) - small for small in (2, 8, 1 << 31)}
    )
)
"""Where comparisons and sums go wrong, as unsigned numbers; cut to a field's size."""

NAMES = (
    b"../../x", b"/etc/x", b"a/b", b".", b"..", b"...", b"a\0b", b"\0", b"", b"a\\b", b"a\nb",
    b"\x7f", b" ", b"~", b"-rf", b"%00", b"a" * 255, b"a" * 256, b"\xff\xfe", b"\xed\xa0\x80",
    b"\xc0\xaf", "\u65e5\u672c".encode() * 20, "\U0001f600".encode(), b"con", b"\x1b[2J",
    "\u202e\u2028".encode(),
)  # fmt: skip
"""Topics that a path must not be made of, and some odd ones that it may."""


class Field(NamedTuple):
    """A number in some bytes: its position and size, in bytes."""

    name: str
    at: int
    size: int


def number(dice: random.Random, old: int, size: int, near: int = 0) -> int:
    """Return a value for a field of `size` bytes; `near` is some length that matters to it."""
    around = dice.choice((old, near)) + dice.choice((-20, -8, -4, -1, 1, 4, 8, 20))
    other = dice.randrange(max(1, near) + 2)
    return dice.choice((dice.choice(NUMBERS), around, other, dice.getrandbits(64))) & (
        (1 << 8 * size) - 1
    )


def set_field(dice: random.Random, data: bytearray, field: Field, near: int = 0) -> str:
    """Give a field another value; say which."""
    place = slice(field.at, field.at + field.size)
    old = int.from_bytes(data[place], "big")
    value = number(dice, old, field.size, near or len(data))
    data[place] = value.to_bytes(field.size, "big")
    return f"{field.name} {old:#x} -> {value:#x}"


def change(
    dice: random.Random,
    data: bytearray,
    fields: Sequence[Field] = (),
    donor: bytes = b"",
    near: int = 0,
) -> str:
    """Change `data` in one way; say in which. `donor` gives bytes of the same kind."""
    if not data:
        return "empty"
    if fields and dice.random() < 0.5:
        field = dice.choice(fields)
        if field.at + field.size <= len(data):
            return set_field(dice, data, field, near)
    at = dice.randrange(len(data))
    length = min(dice.choice((1, 1, 2, 4, 8, 20, 64, len(data))), len(data) - at)
    way = dice.randrange(7)
    if way == 0:
        bit = dice.randrange(8)
        data[at] ^= 1 << bit
        return f"flip bit {bit} of byte {at}"
    if way == 1:
        byte = dice.choice((0, 0, 0xFF, 0x20, 1, 2, dice.randrange(256)))
        data[at : at + length] = bytes([byte]) * length
        return f"fill [{at}, {at + length}) with {byte:#x}"
    if way == 2:
        data[at : at + length] = dice.randbytes(length)
        return f"fill [{at}, {at + length}) at random"
    if way == 3 and donor:
        start = dice.randrange(len(donor))
        piece = donor[start : start + length]
        data[at : at + len(piece)] = piece
        return f"write {len(piece)} bytes of another over {at}"
    if way == 4:
        data[at:at] = data[at : at + length]
        return f"double [{at}, {at + length})"
    if way == 5:
        del data[at : at + length]
        return f"cut [{at}, {at + length}) out"
    del data[at:]
    return f"cut off at {at}"
