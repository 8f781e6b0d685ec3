"""What a task reads, as the driver sends it."""

from __future__ import annotations

import msgspec

from mqlake.client.access import ClientAccess
from mqlake.protocol.bodies.message_queue import MessageQueue
from mqlake.query.live.brokers import Mark


class OffsetRange(msgspec.Struct, frozen=True):
    """Queue offsets [start, end) of one queue.

    Attributes:
        before: the mark of the record before `start`, None if it is not known.
        last: the mark of the record before `end`.
    """

    queue: MessageQueue
    start: int
    end: int
    before: Mark | None = None
    last: Mark | None = None


class LiveTask(msgspec.Struct, frozen=True):
    """What one task reads.

    Attributes:
        access: how servers are reached; its `repr` shows no secret.
        expression: of tags, by which the brokers select messages.
        tags, keys: messages must have one of these; None for all.
        retry_timeout: milliseconds.
        local_stores: directories in which the brokers' files may be.
        decompress: whether bodies are decompressed.
    """

    name_servers: str
    access: ClientAccess
    ranges: tuple[OffsetRange, ...]
    expression: str
    tags: tuple[str, ...] | None
    keys: tuple[str, ...] | None
    fail_on_data_loss: bool
    pull_size: int
    retry_timeout: int
    local_stores: tuple[str, ...] = ()
    decompress: bool = True
