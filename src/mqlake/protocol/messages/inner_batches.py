"""Take inner batches apart as consumers do: decompressed, and up to a limit of messages.

A batch of very many empty messages compresses to almost nothing.

Upstream: `MessageDecoder.decodeMessage`, `PullAPIWrapper.processPullResult`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import msgspec

from mqlake.errors import FormatError
from mqlake.formats import inner_batch
from mqlake.formats.batch_consume_queue import MOST_MESSAGES
from mqlake.formats.message_batch import decode_batch
from mqlake.formats.record import Record
from mqlake.formats.sys_flag import COMPRESSED
from mqlake.protocol.messages.body_compression import decompress


def parts(body: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """Yield flag, body and encoded properties of each message of a decompressed batch.

    Raises:
        FormatError: the body is no batch, or has more messages than a queue's unit can hold; raised
            where that is noticed.
    """
    for number, part in enumerate(inner_batch.parts(body)):
        if number == MOST_MESSAGES:
            raise _too_many()
        yield part


def messages_of(wrapped: Record) -> list[bytes]:
    """Return the messages of an inner batch as records of their own, at the same physical offset.

    Raises:
        FormatError: the body is no batch, cannot be decompressed, or has more messages than a
            queue's unit can hold.
        MissingCodecError: the package of the codec is missing.
    """
    if wrapped.sys_flag & COMPRESSED:
        body = decompress(wrapped.body, wrapped.sys_flag)
        flags = wrapped.sys_flag & ~COMPRESSED
        wrapped = msgspec.structs.replace(wrapped, body=body, sys_flag=flags)
    # Heads are counted first: a message as a record needs many times the memory.
    if sum(1 for _ in islice(decode_batch(wrapped.body), MOST_MESSAGES + 1)) > MOST_MESSAGES:
        raise _too_many()
    return inner_batch.unwrapped(wrapped)


def _too_many() -> FormatError:
    return FormatError(f"the batch has more than {MOST_MESSAGES} messages")
