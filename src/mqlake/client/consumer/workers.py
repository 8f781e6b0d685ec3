"""The tasks that call a consumer's handler."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from mqlake.client.consumer.consumed import ConsumedMessage
from mqlake.client.consumer.finishing import Finishing
from mqlake.client.consumer.inbox import Inbox, InboxQueue
from mqlake.client.errors import ClientError
from mqlake.protocol.bodies.running_info import DirectResult
from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.errors import RemotingError

Handler = Callable[[ConsumedMessage], Awaitable[object]]
"""Handles one message: it is acknowledged if this returns, and redelivered if it raises."""

_log = logging.getLogger(__name__)


class _NoCoroutine(BaseException):
    """A handler has returned something that cannot be awaited: it would do the same for each
    message.

    It is no `Exception`, after which messages are redelivered.
    """


class Workers:
    """Runs handlers until the inbox is closed.

    Attributes:
        handler: the handler that ran last, None before the first.
        concurrency: how many messages it handles at once.
        handling: the messages that handlers have now.
    """

    def __init__(self, inbox: Inbox[InboxQueue], finishing: Finishing) -> None:
        self._inbox, self._finishing = inbox, finishing
        self._tasks: set[asyncio.Task[None]] = set()
        self.handler: Handler | None = None
        self.concurrency = 0
        self.handling: set[ConsumedMessage] = set()

    async def run(self, handler: Handler, concurrency: int) -> None:
        """Handle messages until the inbox is closed.

        Raises:
            ClientError: the handler is not a coroutine function.
            BaseException: a handler raised something other than an `Exception`.
        """
        if not inspect.iscoroutinefunction(handler):
            handler = _awaiting(handler)
        self.handler, self.concurrency = handler, concurrency
        tasks = [asyncio.create_task(self._work(handler)) for _ in range(concurrency)]
        self._tasks.update(tasks)
        try:
            ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
            for task in ended:
                if task.cancelled() or (error := task.exception()) is None:
                    continue
                if isinstance(error, _NoCoroutine):
                    raise ClientError(str(error))
                raise error
        finally:
            await _cancel(tasks)
            self._tasks.difference_update(tasks)

    async def close(self, patience: float, caller: asyncio.Task[Any] | None) -> None:
        """Wait for handlers that are still running, after the inbox was closed.

        Args:
            patience: seconds after which they are cancelled.
            caller: the task that closes the consumer. It may be a handler's task, and is not waited
                for.
        """
        tasks = {task for task in self._tasks if task is not caller}
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=patience)
            await _cancel(late)

    async def handle_directly(self, message: ConsumedMessage, *, in_order: bool) -> DirectResult:
        """Handle a message that is in no queue of the consumer; return how it ended.

        Raises:
            RemotingError: no handler runs.
        """
        handler, loop = self.handler, asyncio.get_running_loop()
        if handler is None or not self._tasks:
            raise RemotingError(
                ResponseCode.SYSTEM_ERROR, "the consumer has no handler that could be called"
            )
        begun, fault = loop.time(), None
        try:
            await handler(message)
        except (Exception, _NoCoroutine) as error:  # noqa: BLE001 (it is told to who asked)
            fault = f"{type(error).__name__}: {error}"
        return DirectResult(
            "CR_THROW_EXCEPTION" if fault else "CR_SUCCESS",
            fault,
            round(1000 * (loop.time() - begun)),
            in_order,
        )

    async def _work(self, handler: Handler) -> None:
        task = asyncio.current_task()
        while (taken := await self._inbox.take(1)) is not None:
            await self._handle(handler, taken[1][0])
            if task is None or task.cancelling():
                return

    async def _handle(self, handler: Handler, message: ConsumedMessage) -> None:
        self.handling.add(message)
        try:
            await handler(message)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                self._finishing.give_back(message)
                raise
            # Not this task was cancelled, but an operation that the handler waited for.
            await self._fail(message)
        except Exception:  # noqa: BLE001 (whatever it is, the message is redelivered)
            await self._fail(message)
        except BaseException:
            self._finishing.give_back(message)
            raise
        else:
            await self._finishing.ack(message)
        finally:
            self.handling.discard(message)

    async def _fail(self, message: ConsumedMessage) -> None:
        _log.exception("message %s failed and is redelivered", message.message_id)
        await self._finishing.retry_later(message, 0)


def _awaiting(handler: Callable[[ConsumedMessage], object]) -> Handler:
    """Return a handler that refuses what is not awaitable."""

    async def handle(message: ConsumedMessage) -> None:
        found = handler(message)
        if not inspect.isawaitable(found):
            name = getattr(handler, "__name__", repr(handler))
            raise _NoCoroutine(f"the handler {name} is not a coroutine function: write async def")
        await found

    return handle


async def _cancel(tasks: set[asyncio.Task[None]] | list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
