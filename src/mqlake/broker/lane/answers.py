"""The texts of the answers to sends, as the lane's kernel takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
import numpy as np

from mqlake.broker.send.answers import Answers
from mqlake.protocol.binary_fields import START_SIZE, pair_start
from mqlake.protocol.command import Serialization
from mqlake.protocol.frames import encode

if TYPE_CHECKING:
    from mqlake.dispatch.batch import Bytes, Longs

_LENGTH: Final = 4
_LENGTHS: Final = 8
_PLACES: Final = 4, _LENGTHS + 5, _LENGTHS + START_SIZE
"""In a frame with a binary header: of the length of the header, the opaque, and the length of the
fields.
"""
_SAMPLE: Final = (0x0123456789ABCDEF, 1_672_945_301, 1_672_945_302, "qK9zV7", 1_672_945_303)
"""Values of an answer: physical offset, queue id, queue offset, unique key, opaque."""
_DIGITS: Final = 16
_TEXTS: Final = tuple(
    (f"{value:016X}" if place == 0 else str(value)).encode() for place, value in enumerate(_SAMPLE)
)


class LaneAnswers(NamedTuple):
    """Answers in both forms.

    Attributes:
        texts: u1[n]. With a binary header: a frame up to its message id, which ends in digits for
            the physical offset; and the names of the further fields, encoded before a length: of
            the queue id, the queue offset and the unique key. In JSON: the six parts of a header
            around these values and the opaque.
        marks: i8[n]; where each part begins, and the last one ends, and four positions in the
            first one (`layout.PLACES`).
    """

    texts: Bytes
    marks: Longs


def lane_answers(answers: Answers) -> LaneAnswers | None:
    """Return the answers for the kernel; None if their JSON has another order of values."""
    parts = _binary(answers)
    rest = answers.success[int(Serialization.JSON)].fill(*_SAMPLE)[_LENGTHS:]
    for value in _TEXTS:
        if rest.count(value) != 1:
            return None
        part, rest = rest.split(value)
        parts.append(part)
    parts.append(rest)
    marks = np.cumsum([0, *map(len, parts)])
    texts = np.frombuffer(b"".join(parts), np.uint8)
    id_size = len(answers.host) + _DIGITS
    places = (*_PLACES, len(parts[0]) - id_size - _LENGTH)
    return LaneAnswers(texts, np.append(marks, places).astype(np.int64))


def _binary(answers: Answers) -> list[bytes]:
    success = answers.binary_success
    fields = {**success.fields, "msgId": f"{answers.host}{0:016X}"}
    # The kernel adds the length of what follows the start to its three lengths.
    start = encode(msgspec.structs.replace(success, known_fields=fields))
    names = ("queueId", "queueOffset", "transactionId")
    return [start, *(pair_start(name, 0)[:-_LENGTH] for name in names)]
