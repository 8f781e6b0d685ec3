"""Messages that a consumer has received but not finished."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Coroutine, Iterable
from typing import Any

from mqlake.client.consumer.simple_consumer import PoppedMessage, SimpleConsumer
from mqlake.errors import MqlakeError
from mqlake.workqueue.refusals import is_final

_TRIES = 3
_PAUSE = 0.2
_LATER = 1.0
"""Seconds between the tries after the first ones."""
_MOST = 32
"""Maximum number of messages of one pop."""

_log = logging.getLogger(__name__)


class PrefetchWindow:
    """Limits how many unfinished messages a consumer has; used on the event loop.

    Attributes:
        limit: the prefetch count, 0 for no limit.
        readers: the number of queues that are read for the consumer.
        held: the unfinished messages.
    """

    def __init__(self) -> None:
        self.limit = self.readers = 0
        self.held: set[Delivery] = set()
        self._late: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()

    @property
    def room(self) -> int:
        """Return how many messages may be received now, 32 at most."""
        return _MOST if self.limit == 0 else max(0, min(_MOST, self.limit - len(self.held)))

    @property
    def share(self) -> int:
        """Return how many messages one reader may ask for now.

        A reader does not know what the others are about to receive. Messages over the limit go back
        to the broker: sharing the limit keeps that rare.
        """
        return max(min(1, self.room), self.room // max(1, self.readers))

    def wake(self) -> None:
        """Wake those who wait for a change."""
        self._changed.set()

    async def changed(self) -> None:
        """Wait until the limit, or the number of held messages, has changed."""
        self._changed.clear()
        await self._changed.wait()

    def drop(self, delivery: Delivery) -> None:
        """Note that a message is finished."""
        self.held.discard(delivery)
        self.wake()

    def finish_later(self, work: Coroutine[Any, Any, None]) -> None:
        """Try in the background to finish a message."""
        task = asyncio.get_running_loop().create_task(work)
        self._late.add(task)
        task.add_done_callback(self._late.discard)

    async def end(self, seconds: float) -> None:
        """Give the background tasks some seconds, then cancel those that are left."""
        if self._late:
            _, unfinished = await asyncio.wait(self._late, timeout=seconds)
            for task in unfinished:
                task.cancel()


class Delivery:
    """A message that no other consumer gets until it is acknowledged or given back.

    Its coroutines run one after another: an extension changes the receipt, and an acknowledgement
    with the old receipt would not count.

    Attributes:
        is_lost: whether another consumer received the message meanwhile.
    """

    def __init__(
        self, consumer: SimpleConsumer, message: PoppedMessage, window: PrefetchWindow
    ) -> None:
        self.message, self._consumer, self._window = message, consumer, window
        self._lock, self._is_finished = asyncio.Lock(), False
        self.is_lost = self._is_failing = False
        self._renewed = asyncio.get_running_loop().time()
        window.held.add(self)

    def age(self) -> float:
        """Return the seconds since the message was received or extended."""
        return asyncio.get_running_loop().time() - self._renewed

    async def ack(self) -> None:
        """Acknowledge the message: it is never redelivered.

        Raises:
            MqlakeError: the broker does not confirm it. The acknowledgement is retried in the
                background; if that also fails, the message is redelivered.
        """
        async with self._lock:
            if not self._is_finished:
                await self._finish(None)

    async def give_back(self) -> None:
        """Have the message redelivered at once.

        Raises:
            MqlakeError: the broker does not confirm it: the message is redelivered later.
        """
        async with self._lock:
            if not self._is_finished:
                await self._finish(0.0)

    async def extend(self, seconds: float) -> None:
        """Keep the message for so many seconds from now; the first failure is logged."""
        async with self._lock:
            if self._is_finished:
                return
            started = asyncio.get_running_loop().time()
            try:
                await self._consumer.change_invisible(self.message, seconds)
            except MqlakeError as error:
                self.is_lost = is_final(error)
                if self.is_lost or not self._is_failing:
                    _log.warning("message %s is not extended: %s", self._name, error)
                self._is_failing = True
            else:
                self._renewed, self._is_failing = started, False

    async def _finish(self, seconds: float | None) -> None:
        self._is_finished = True
        try:
            for attempt in range(1, _TRIES + 1):
                try:
                    await self._ask(seconds)
                except MqlakeError as error:
                    if is_final(error):
                        raise
                    if attempt == _TRIES:
                        self._window.finish_later(self._insist(seconds))
                        raise
                    await asyncio.sleep(_PAUSE)
                else:
                    return
        finally:
            self._window.drop(self)

    async def _ask(self, seconds: float | None) -> None:
        if seconds is None:
            await self._consumer.ack(self.message)
        else:
            await self._consumer.change_invisible(self.message, seconds)

    async def _insist(self, seconds: float | None) -> None:
        """Try again until the message is redelivered anyway: its task need not run twice."""
        receipt = self.message.receipt
        visible = receipt.invisible_time / 1000 if receipt else 0.0
        while self.age() < visible:
            await asyncio.sleep(_LATER)
            try:
                await self._ask(seconds)
            except MqlakeError as error:
                if is_final(error):
                    break
            else:
                return
        _log.warning("message %s was not acknowledged in time, and is redelivered", self._name)

    @property
    def _name(self) -> str:
        return f"{self.message.message_id} of {self.message.topic}"


async def log_failures(works: Iterable[Awaitable[object]], what: str) -> None:
    """Await all of these at the same time; log failures."""
    for result in await asyncio.gather(*works, return_exceptions=True):
        if isinstance(result, BaseException):
            _log.warning("%s: %s", what, result)
