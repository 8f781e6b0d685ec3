"""The texts of the answers to sends, as the lane's kernel takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from mqlake.broker.send.answers import Answers
from mqlake.broker.send.run_frames import SendAnswers
from mqlake.protocol.command import Serialization

if TYPE_CHECKING:
    from mqlake.dispatch.batch import Bytes, Longs

_LENGTHS: Final = 8
_SAMPLE: Final = (0x0123456789ABCDEF, 1_672_945_301, 1_672_945_302, "qK9zV7", 1_672_945_303)
"""Values of an answer: physical offset, queue id, queue offset, unique key, opaque."""
_TEXTS: Final = tuple(
    (f"{value:016X}" if place == 0 else str(value)).encode() for place, value in enumerate(_SAMPLE)
)


class LaneAnswers(NamedTuple):
    """Answers in both forms.

    Attributes:
        start, places, names: with a binary header, as `answer_sends` takes them.
        text, parts: u1[n], i8[7]: the six parts of a header in JSON around its values, and where
            each begins, and the last ends.
    """

    start: Bytes
    places: tuple[int, int, int]
    names: tuple[Bytes, ...]
    text: Bytes
    parts: Longs


def lane_answers(answers: Answers) -> LaneAnswers | None:
    """Return the answers for the kernel; None if their JSON has another order of values."""
    sent = SendAnswers(answers.binary_success, answers.host)
    rest = answers.success[int(Serialization.JSON)].fill(*_SAMPLE)[_LENGTHS:]
    parts: list[bytes] = []
    for value in _TEXTS:
        if rest.count(value) != 1:
            return None
        part, rest = rest.split(value)
        parts.append(part)
    parts.append(rest)
    ends = np.cumsum([0, *map(len, parts)])
    text = np.frombuffer(b"".join(parts), np.uint8)
    return LaneAnswers(sent.start, sent.places, sent.names, text, ends.astype(np.int64))
