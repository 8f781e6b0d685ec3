"""Runs of sends: frames one behind the other, all alike, laid out and answered by kernels.

A connection over which many threads send brings them so: SEND_MESSAGE_V2, or SEND_BATCH_MESSAGE,
with a binary header, to one topic. What is in the least unusual is left to those who read frames
one by one.
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
from mqlake.protocol.binary_header import START_SIZE, pair_start
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
"""Where in its data a send begins, and what its answer needs besides where it was put."""

KERNELS: Final = (draft_sends, draft_batches, answer_sends)
"""What is compiled, or loaded from the cache, before the first run."""

_ROWS: Final = 512
_BATCH_ROWS: Final = 4096
"""Messages of a run of batches at most."""
_SPARE: Final = 128
"""Bytes that an answer may have beyond its start and its key: names and numbers."""
_LENGTHS: Final = 8
_OPAQUE_AT: Final = _LENGTHS + 5


class Most(NamedTuple):
    """Bytes that a frame, a header, a body and stored properties may have at most."""

    frame: int
    header: int
    body: int
    properties: int = MAX_LENGTH


class Run(NamedTuple):
    """Sends to one topic.

    Attributes:
        drafts: a row for each message, of host 0; their queues are places in `queue_ids`.
        sends: a row (SEND) for each frame.
        end: position behind the last one.
    """

    drafts: Drafts
    sends: Rows
    queue_ids: list[int]
    end: int


class SendRuns:
    """Finds runs in what connections bring. A run is gone once the next one is asked for."""

    def __init__(self, most: Most) -> None:
        self._bytes = np.array(most)
        self._drafts, self._sends = np.empty(_BATCH_ROWS, DRAFT), np.empty(_ROWS, SEND)
        self._queue_ids = np.empty(_ROWS, np.int64)
        self._texts: Bytes = np.empty(0, np.uint8)

    def find(self, data: bytes, at: int, topic: Bytes, queues: int, own: Bytes) -> Run:
        """Return the run of single messages that begins at a position, maybe an empty one.

        Args:
            queues: a send to another queue than those below ends the run.
            own: stored behind the properties of each message.
        """
        source = np.frombuffer(data, np.uint8)
        room = len(data) - at + _ROWS * (len(own) + 1)
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
            self._drafts[:_ROWS],
            self._sends,
            self._texts,
        )
        drafts = Drafts(source, read_only(self._texts), self._drafts[:count])
        return Run(drafts, self._sends[:count], self._queue_ids[:found].tolist(), end)

    def find_batches(self, data: bytes, at: int, topic: Bytes, queues: int) -> Run:
        """Return the run of batches that begins at a position, maybe an empty one.

        Args:
            queues: a batch to another queue than those below ends the run.
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
    """Makes the answers to runs.

    Args:
        response: the answer to a send, but for the fields that say where the message was put.
        host: what all message ids begin with.
    """

    def __init__(self, response: Command, host: str) -> None:
        message_id = f"{host}{0:016X}"
        fields = {**response.fields, "msgId": message_id}
        # The kernel adds what comes behind the start to its three lengths.
        self._start = _array(encode(msgspec.structs.replace(response, known_fields=fields)))
        self._id_size = len(message_id)
        self._places = 4, _OPAQUE_AT, _LENGTHS + START_SIZE
        names = ("queueId", "queueOffset", "transactionId")
        self._names = tuple(_array(pair_start(name, 0)[:-4]) for name in names)

    def of(self, run: Run, count: int) -> bytes:
        """Return the frames that answer the first sends of a run, whose drafts were written."""
        sends = run.sends[:count]
        size = count * (len(self._start) + _SPARE) + int(sends["key_length"].sum())
        size += int(sends["messages"].sum()) * (1 + self._id_size)
        target = np.empty(size, np.uint8)
        end = answer_sends(
            target,
            run.drafts.source,
            run.drafts.rows,
            sends,
            self._start,
            self._id_size,
            self._places,
            self._names,
        )
        return target[:end].tobytes()


def _array(data: bytes) -> Bytes:
    return np.frombuffer(data, np.uint8)
