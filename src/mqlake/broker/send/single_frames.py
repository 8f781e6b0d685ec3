"""Read frames of single sends by a compiled function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from mqlake.broker.send.compiled.single_send import read_single
from mqlake.broker.send.run_frames import Most
from mqlake.dispatch.compiled import put_sent
from mqlake.dispatch.writing import plain_put
from mqlake.kernels.entry_point import BYTES, DATA, INT, LONGS, entry_point

if TYPE_CHECKING:
    from mqlake.dispatch.batch import Bytes, Longs

KERNELS: Final = (read_single, put_sent.put_sent)
"""Compiled, or loaded from the cache, before the first send is read so."""

_ROOM: Final = 1 << 16
"""Bytes of the stored properties of one message."""


class SingleFrame(NamedTuple):
    """A frame that was read.

    Attributes:
        end: the position after it; 0 if it is not typical, and is to be read otherwise.
        topic_at, topic_size: where its topic is in the received data.
        key_at, key_size: where its unique key is in the stored properties.
    """

    end: int
    topic_at: int
    topic_size: int
    queue_id: int
    opaque: int
    key_at: int
    key_size: int


class SingleFrames:
    """Reads frames of sends, each to be put and answered before the next one is read.

    Args:
        own: stored after the properties of each message.

    Attributes:
        properties, numbers: of the message that was read last, as `plain_put.PutSent` takes them.
    """

    def __init__(self, most: Most, own: bytes) -> None:
        self._most, self._own = np.array(most, np.int64), own
        self._text = bytearray(_ROOM)
        self.properties: Bytes = np.frombuffer(self._text, np.uint8)
        self.numbers: Longs = np.zeros(put_sent.NUMBERS, np.int64)
        self._read = entry_point(read_single, DATA, INT, DATA, LONGS, BYTES, LONGS)
        plain_put.load_sent()

    def read(self, data: bytes, at: int) -> tuple[int, int, int, int, int, int, int]:
        """Read the frame at a position; return a `SingleFrame`, as the tuple that it is."""
        return self._read(data, at, self._own, self._most, self.properties, self.numbers)

    def key(self, at: int, size: int) -> str:
        """Return the unique key of the message that was read last."""
        return self._text[at : at + size].decode()
