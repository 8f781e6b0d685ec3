"""Send the rows of a task until brokers have acknowledged them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from mqlake.client.errors import RefusedError
from mqlake.client.message import Message
from mqlake.client.producer.producer import Producer
from mqlake.client.producer.result import SendStatus
from mqlake.errors import FormatError, MqlakeError
from mqlake.query.live.connection import connection
from mqlake.query.reading.log import logger
from mqlake.spark.live.outgoing_rows import messages
from mqlake.spark.live.sink_options import LiveWriteOptions

log = logger()

_MOST, _MOST_BYTES = 2000, 1 << 20
"""Maximum messages and bytes that are sent together; after a failure, all of them are sent
again.
"""

_FIRST_WAIT, _LONGEST_WAIT = 0.1, 5.0
"""Seconds between two tries."""

_SHORTEST_SEND, _LONGEST_SEND = 3.0, 30.0
"""Seconds of one try: a broker that answers late would store its messages twice."""


def send_rows(batches: Iterable[Any], options: LiveWriteOptions) -> int:
    """Send the rows of a task; return how many messages brokers have acknowledged.

    Args:
        batches: `pyarrow.RecordBatch`es.

    Raises:
        MqlakeError: a row cannot be sent, a broker refuses it, or none answers. The message says
            how many messages of the task were stored before.
    """
    shared = connection(options)
    sender = _RetryingSender(options)
    shared.run(sender.start())
    try:
        for batch in batches:
            for some in _together(messages(batch, options.topic)):
                shared.run(sender.send(some))
    except MqlakeError as error:
        raise _kind_of(error)(
            f"{error}; at least {sender.stored} messages of this task are stored, and are "
            "stored twice if it runs again"
        ) from None
    finally:
        shared.run(sender.close())
    sender.report()
    return sender.stored


def _kind_of(error: MqlakeError) -> type[MqlakeError]:
    """Return the class for an error with more words: that of wrong rows, or the root class."""
    return FormatError if isinstance(error, FormatError) else MqlakeError


def _together(all_of: Iterator[Message]) -> Iterator[list[Message]]:
    some: list[Message] = []
    size = 0
    for message in all_of:
        some.append(message)
        size += len(message.body)
        if len(some) >= _MOST or size >= _MOST_BYTES:
            yield some
            some, size = [], 0
    if some:
        yield some


class _RetryingSender:
    """Sends messages, and retries if no broker acknowledges them.

    Attributes:
        stored: the number of messages that brokers have acknowledged.
    """

    def __init__(self, options: LiveWriteOptions) -> None:
        self._seconds = options.retry_timeout / 1000
        timeout = min(max(self._seconds, _SHORTEST_SEND), _LONGEST_SEND)
        self._producer = Producer(
            options.name_servers,
            group=options.group,
            timeout=timeout,
            tls=options.access.tls,
            credentials=options.access.credentials,
        )
        self.stored = self._weak = 0

    async def start(self) -> None:
        await self._producer.start()

    async def close(self) -> None:
        await self._producer.close()

    async def send(self, some: Sequence[Message]) -> None:
        """Send messages; send all of them again if one fails temporarily.

        Raises:
            FormatError, RefusedError: a message cannot be sent.
            MqlakeError: no broker has acknowledged the messages in time.
        """
        loop = asyncio.get_running_loop()
        begun, wait = loop.time(), _FIRST_WAIT
        while True:
            try:
                results = await self._producer.send_many(some)
            except (FormatError, RefusedError):
                raise
            except MqlakeError as error:
                left = begun + self._seconds - loop.time()
                if left <= 0:
                    raise MqlakeError(
                        f"{len(some)} messages were not acknowledged within {self._seconds:g} s "
                        f"(option retryTimeout): {error}"
                    ) from None
                log.warning("%d messages are sent again: %s", len(some), error)
            else:
                self.stored += len(results)
                self._weak += sum(result.status is not SendStatus.SEND_OK for result in results)
                return
            await asyncio.sleep(min(wait, left))
            wait = min(2 * wait, _LONGEST_WAIT)

    def report(self) -> None:
        """Log how many messages are not yet as durable as their brokers are set to make them."""
        if self._weak:
            log.warning(
                "%d of %d messages are stored, but were not flushed or replicated in time",
                self._weak,
                self.stored,
            )
