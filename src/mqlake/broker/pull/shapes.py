"""Shapes of frames: headers that differ in a few numbers only.

A shape is made from a header whose numbers are known. It is checked before it is used: headers that
it makes with other numbers must be read as those numbers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from mqlake.protocol.binary_fields import START_SIZE, pair_start
from mqlake.protocol.command import Serialization

if TYPE_CHECKING:
    from mqlake.dispatch.batch import Bytes, Longs

NONE, DIGITS, COUNTED, RAW, REST = range(5)
"""How a number is written: not at all; as digits; as a length (i4) and digits; as i4; as the bytes
between it and the end of the header (i4), which is no number of its own."""

QUEUE_ID, COMMIT_OFFSET, QUEUE_OFFSET, OPAQUE = range(4)
"""The numbers of a request."""
NEXT_OFFSET, MIN_OFFSET, MAX_OFFSET = range(3)
"""The numbers of an answer, before its opaque."""
NUMBERS: Final = 4

_NAMES: Final = ("queueId", "commitOffset", "queueOffset")
_OPAQUE_AT: Final = 5
_MOST_DIGITS: Final = 18
_JSON_NUMBER: Final = re.compile(rb"(?:0|[1-9][0-9]{0,17})(?![0-9])")
_LONGEST: Final = 2048
"""Bytes of a header that has a shape."""


class Shape(NamedTuple):
    """A header, cut where its numbers are.

    Attributes:
        text: the header without its numbers.
        parts: for each stretch of `text` where it begins, its length, which number follows it, and
            how that is written; i8[n, 4].
    """

    text: Bytes
    parts: Longs

    def is_like(self, other: Shape) -> bool:
        """Return whether headers of one shape are those of the other."""
        return np.array_equal(self.text, other.text) and np.array_equal(self.parts, other.parts)

    def fill(self, numbers: Sequence[int]) -> bytes:
        """Return the header with these numbers."""
        made = bytearray()
        text, rests = bytes(self.text), list[int]()
        parts: list[list[int]] = self.parts.tolist()
        for at, length, number, form in parts:
            made += text[at : at + length]
            if form == REST:
                rests.append(len(made))
                made += bytes(4)
            elif form == RAW:
                made += numbers[number].to_bytes(4)
            elif form != NONE:
                digits = b"%d" % numbers[number]
                made += (len(digits).to_bytes(4) if form == COUNTED else b"") + digits
        for at in rests:
            made[at : at + 4] = (len(made) - at - 4).to_bytes(4)
        return bytes(made)


class _HeaderGap(NamedTuple):
    at: int
    end: int
    number: int
    form: int


def request_shape(header: bytes, kind: int, numbers: Sequence[int]) -> Shape | None:
    """Return the shape of a pull's header in which these numbers are; None if it is not typical."""
    if len(header) > _LONGEST:
        return None
    is_binary = kind == Serialization.ROCKETMQ
    names = {name: numbers[number] for number, name in enumerate(_NAMES)}
    gaps = _named(header, names, is_binary=is_binary)
    return _shape(header, gaps, numbers[OPAQUE], is_binary=is_binary)


def answer_shape(header: bytes, kind: int, numbers: Mapping[str, int], opaque: int) -> Shape | None:
    """Return the shape of an answer's header, given its fields that are numbers, in order."""
    is_binary = kind == Serialization.ROCKETMQ
    gaps = _named(header, numbers, is_binary=is_binary)
    return _shape(header, gaps, opaque, is_binary=is_binary)


def _named(header: bytes, fields: Mapping[str, int], *, is_binary: bool) -> list[_HeaderGap] | None:
    """Return where the values of fields are, None if any is not there once."""
    gaps: list[_HeaderGap] = []
    for number, (name, value) in enumerate(fields.items()):
        mark = pair_start(name, 0)[:-4] if is_binary else b'"%s":"' % name.encode()
        if header.count(mark) != 1:
            return None
        at = header.index(mark) + len(mark)
        digits = b"%d" % value
        written = len(digits).to_bytes(4) + digits if is_binary else digits + b'"'
        if value < 0 or len(digits) > _MOST_DIGITS or not header.startswith(written, at):
            return None
        end = at + len(written) - (0 if is_binary else 1)
        gaps.append(_HeaderGap(at, end, number, COUNTED if is_binary else DIGITS))
    return gaps


def _shape(
    header: bytes, gaps: list[_HeaderGap] | None, opaque: int, *, is_binary: bool
) -> Shape | None:
    if gaps is None or opaque < 0:
        return None
    if is_binary:
        gaps.append(_HeaderGap(_OPAQUE_AT, _OPAQUE_AT + 4, OPAQUE, RAW))
        at = START_SIZE + int.from_bytes(header[START_SIZE - 4 : START_SIZE])
        if header[at : at + 4] != max(0, len(header) - at - 4).to_bytes(4):
            return None
        gaps.append(_HeaderGap(at, at + 4, OPAQUE, REST))
    else:
        mark = b'"opaque":'
        found = _JSON_NUMBER.match(header, header.find(mark) + len(mark))
        if header.count(mark) != 1 or found is None or int(found[0]) != opaque:
            return None
        gaps.append(_HeaderGap(found.start(), found.end(), OPAQUE, DIGITS))
    text, parts, at = bytearray(), list[tuple[int, int, int, int]](), 0
    for gap in sorted(gaps):
        parts.append((len(text), gap.at - at, gap.number, gap.form))
        text += header[at : gap.at]
        at = gap.end
    parts.append((len(text), len(header) - at, 0, NONE))
    text += header[at:]
    packed = np.array(parts, np.int64)
    packed.setflags(write=False)
    return Shape(np.frombuffer(bytes(text), np.uint8), packed)
