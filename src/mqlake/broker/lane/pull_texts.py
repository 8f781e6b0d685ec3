"""Headers that differ in a few numbers only: their texts, and where the numbers are."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from mqlake.broker.lane.pull_layout import (
    ANSWER_SIZE,
    COMMIT_OFFSET,
    COUNTED,
    DIGITS,
    GAPS,
    KEY_AT,
    NONE,
    OPAQUE,
    PLACES,
    QUEUE_ID,
    QUEUE_OFFSET,
    RAW,
    REST,
    SIGNATURE,
    SIGNED,
)
from mqlake.protocol.binary_fields import START_SIZE, pair_start
from mqlake.protocol.command import Command, Serialization
from mqlake.protocol.signature import signed_names

if TYPE_CHECKING:
    from mqlake.dispatch.batch import Bytes, Longs

_OPAQUE_AT: Final = 5
_MOST_DIGITS: Final = 18
DIGEST: Final = 20
"""Bytes that are written as a signature."""
NUMBERED: Final = {"queueId": QUEUE_ID, "queueOffset": QUEUE_OFFSET, "commitOffset": COMMIT_OFFSET}
"""The fields that are numbers of a pull's header."""
_JSON_NUMBER: Final = re.compile(rb"(?:0|[1-9][0-9]{0,17})(?![0-9])")


class NumberGap(NamedTuple):
    """Where a number is missing in a text: which one, and how it is written (`pull_layout`)."""

    at: int
    number: int
    form: int


class GappedText(NamedTuple):
    """A header without its numbers.

    Attributes:
        gaps: by position, ascending.
    """

    text: bytes
    gaps: tuple[NumberGap, ...]

    def fill(self, numbers: Sequence[int]) -> bytes:
        """Return the header with these numbers."""
        made, at, rest = bytearray(), 0, -1
        for gap in self.gaps:
            made += self.text[at : gap.at]
            at = gap.at
            if gap.form == REST:
                rest = len(made)
                made += bytes(4)
            elif gap.form == RAW:
                made += numbers[gap.number].to_bytes(4)
            elif gap.form == SIGNED:
                made += b64encode(numbers[gap.number].to_bytes(DIGEST))
            else:
                digits = b"%d" % numbers[gap.number]
                made += (len(digits).to_bytes(4) if gap.form == COUNTED else b"") + digits
        made += self.text[at:]
        if rest >= 0:
            made[rest : rest + 4] = (len(made) - rest - 4).to_bytes(4)
        return bytes(made)

    def parts(self) -> Longs:
        """Return i8[GAPS + 1, 4]: where each stretch of the text begins, its length, which number
        follows it, and how that is written.
        """
        parts = np.zeros((GAPS + 1, 4), np.int64)
        at = 0
        for row, gap in enumerate(self.gaps):
            parts[row] = at, gap.at - at, gap.number, gap.form
            at = gap.at
        parts[len(self.gaps)] = at, len(self.text) - at, 0, NONE
        return parts


def text_of_key(key: Bytes, size: int) -> GappedText:
    """Return the header that a key of `read_pull` stands for."""
    data = key[KEY_AT : KEY_AT + size].tobytes()
    text, places = data[1 : -4 * PLACES], data[-4 * PLACES :]
    is_binary = data[0] == Serialization.ROCKETMQ
    found = [int.from_bytes(places[4 * n : 4 * n + 4], signed=True) for n in range(PLACES)]
    gaps: list[NumberGap] = []
    for number, place in enumerate(found[:-1]):
        if number == SIGNATURE:
            if place >= 0:
                gaps.append(NumberGap(place - KEY_AT - 1, number, SIGNED))
            continue
        form = DIGITS if not is_binary else RAW if number == OPAQUE else COUNTED
        gaps.append(NumberGap(place - KEY_AT - 1, number, form))
    if is_binary:
        gaps.append(NumberGap(found[-1] - KEY_AT - 1, OPAQUE, REST))
    return GappedText(text, tuple(sorted(gaps)))


def signed_text(request: Command) -> GappedText | None:
    """Return the text that is signed of a pull, without its numbers; None if it is too long."""
    text, gaps, fields = bytearray(), list[NumberGap](), request.fields
    for name in signed_names(fields, request.version):
        if name in NUMBERED:
            gaps.append(NumberGap(len(text), NUMBERED[name], DIGITS))
        else:
            text += fields[name].encode("utf-8", "replace")
    return GappedText(bytes(text), tuple(gaps)) if len(text) <= ANSWER_SIZE else None


def answer_text(
    header: bytes, kind: int, fields: Iterable[tuple[str, int]], opaque: int
) -> GappedText | None:
    """Return an answer's header without its numbers; None if it is not typical.

    Args:
        fields: the names of its fields that are numbers, with the values that they have in it.
        opaque: the one in it.
    """
    is_binary = kind == Serialization.ROCKETMQ
    found: list[tuple[int, int, int, int]] = []
    for number, (name, value) in enumerate(fields):
        mark = pair_start(name, 0)[:-4] if is_binary else b'"%s":"' % name.encode()
        digits = b"%d" % value
        written = len(digits).to_bytes(4) + digits if is_binary else digits
        at = header.find(mark + written) + len(mark)
        if header.count(mark) != 1 or at < len(mark) or len(digits) > _MOST_DIGITS:
            return None
        found.append((at, at + len(written), number, COUNTED if is_binary else DIGITS))
    if is_binary:
        found.append((_OPAQUE_AT, _OPAQUE_AT + 4, OPAQUE, RAW))
        at = START_SIZE + int.from_bytes(header[START_SIZE - 4 : START_SIZE])
        found.append((at, at + 4, OPAQUE, REST))
    else:
        mark = b'"opaque":'
        digits = _JSON_NUMBER.match(header, header.find(mark) + len(mark))
        if header.count(mark) != 1 or digits is None or int(digits[0]) != opaque:
            return None
        found.append((digits.start(), digits.end(), OPAQUE, DIGITS))
    return _gapped(header, sorted(found))


def _gapped(header: bytes, found: Sequence[tuple[int, int, int, int]]) -> GappedText | None:
    text, gaps, at = bytearray(), list[NumberGap](), 0
    for begin, end, number, form in found:
        text += header[at:begin]
        gaps.append(NumberGap(len(text), number, form))
        at = end
    text += header[at:]
    return GappedText(bytes(text), tuple(gaps)) if len(text) <= ANSWER_SIZE else None
