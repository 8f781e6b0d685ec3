"""Runs of sends: consecutive frames, all alike, which kernels encode and answer.

A connection over which many threads send delivers them in this form: SEND_MESSAGE_V2, or
SEND_BATCH_MESSAGE, with a binary header, to one topic. Frames that are unusual in any way are left
to the code for single frames.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec
import numpy as np

from mqlake.broker.send.compiled.batch_frames import draft_batches
from mqlake.broker.send.compiled.send_answers import answer_sends
from mqlake.broker.send.compiled.send_frames import draft_sends
from mqlake.dispatch.batch import Bytes
from mqlake.dispatch.drafts import DRAFT, Drafts, Rows, read_only
from mqlake.formats.properties import MAX_LENGTH
from mqlake.protocol.binary_fields import START_SIZE, pair_start
from mqlake.protocol.command import Command
from mqlake.protocol.frames import encode

SEND: Final = np.dtype(
    [
        ("frame_at", "i8"),
        ("key_at", "i8"),
        ("key_length", "i4"),
        ("opaque", "i4"),
        ("messages", "i4"),
    ],
    align=True,
)
"""Where a send begins in its data, and what its answer needs in addition to the put's position."""

KERNELS: Final = (draft_sends, draft_batches, answer_sends)
"""Compiled, or loaded from the cache, before the first run."""

MOST_SENDS: Final = 512
"""Maximum number of sends of a run."""
_BATCH_ROWS: Final = 4096
"""Maximum number of messages of a run of batches."""
_SPARE: Final = 128
"""Maximum bytes of an answer beyond its start and its key: names and numbers."""
_LENGTHS: Final = 8
_OPAQUE_AT: Final = _LENGTHS + 5


class Most(NamedTuple):
    """Maximum bytes of a frame, a header, a body and stored properties."""

    frame: int
    header: int
    body: int
    properties: int = MAX_LENGTH


class Run(NamedTuple):
    """Sends to one topic.

    Attributes:
        drafts: a row for each message, of host 0; their queues are indexes into `queue_ids`.
        sends: a row (SEND) for each frame.
        end: position after the last one.
    """

    drafts: Drafts
    sends: Rows
    queue_ids: list[int]
    end: int


class SendRuns:
    """Finds runs in received data. A run is valid until the next one is requested."""

    def __init__(self, most: Most) -> None:
        self._bytes = np.array(most)
        self._drafts, self._sends = np.empty(_BATCH_ROWS, DRAFT), np.empty(MOST_SENDS, SEND)
        self._queue_ids = np.empty(MOST_SENDS, np.int64)
        self._texts: Bytes = np.empty(0, np.uint8)

    def find(self, data: bytes, at: int, topic: Bytes, queues: int, own: Bytes) -> Run:
        """Return the run of single messages that begins at a position, perhaps an empty one.

        Args:
            queues: a send to a queue at or above this number ends the run.
            own: stored after the properties of each message.
        """
        source = np.frombuffer(data, np.uint8)
        room = len(data) - at + MOST_SENDS * (len(own) + 1)
        if len(self._texts) < room:
            self._texts = np.empty(room, np.uint8)
        count, found, end = draft_sends(
            source,
            at,
            topic,
            own,
            queues,
            self._bytes,
            np.full(queues, -1, np.int64),
            self._queue_ids,
            self._drafts[:MOST_SENDS],
            self._sends,
            self._texts,
        )
        drafts = Drafts(source, read_only(self._texts), self._drafts[:count])
        return Run(drafts, self._sends[:count], self._queue_ids[:found].tolist(), end)

    def find_batches(self, data: bytes, at: int, topic: Bytes, queues: int) -> Run:
        """Return the run of batches that begins at a position, perhaps an empty one.

        Args:
            queues: a batch to a queue at or above this number ends the run.
        """
        source = np.frombuffer(data, np.uint8)
        count, rows, found, end = draft_batches(
            source,
            at,
            topic,
            queues,
            self._bytes,
            np.full(queues, -1, np.int64),
            self._queue_ids,
            self._drafts,
            self._sends,
        )
        drafts = Drafts(source, source, self._drafts[:rows])
        return Run(drafts, self._sends[:count], self._queue_ids[:found].tolist(), end)


class SendAnswers:
    """Creates the answers to runs.

    Args:
        response: the answer to a send, without the fields for the position of the message.
        host: the beginning of all message ids.

    Attributes:
        start, places, names: as `answer_sends` takes them.
    """

    def __init__(self, response: Command, host: str) -> None:
        message_id = f"{host}{0:016X}"
        fields = {**response.fields, "msgId": message_id}
        # The kernel adds the length of what follows the start to its three lengths.
        self.start = _array(encode(msgspec.structs.replace(response, known_fields=fields)))
        self._id_size = len(message_id)
        self.places = 4, _OPAQUE_AT, _LENGTHS + START_SIZE
        names = ("queueId", "queueOffset", "transactionId")
        self.names = tuple(_array(pair_start(name, 0)[:-4]) for name in names)

    def of(self, run: Run, count: int) -> bytes:
        """Return the frames that answer the first sends of a run, whose drafts were written."""
        sends = run.sends[:count]
        size = count * (len(self.start) + _SPARE) + int(sends["key_length"].sum())
        size += int(sends["messages"].sum()) * (1 + self._id_size)
        target = np.empty(size, np.uint8)
        end = answer_sends(
            target,
            run.drafts.source,
            run.drafts.rows,
            sends,
            self.start,
            self._id_size,
            self.places,
            self.names,
        )
        return target[:end].tobytes()


def _array(data: bytes) -> Bytes:
    return np.frombuffer(data, np.uint8)
