"""Send trace records in the background (upstream: `AsyncTraceDispatcher`)."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable

from mqlake.client.trace.records import TraceRecord
from mqlake.errors import MqlakeError
from mqlake.formats.properties import KEY_SEPARATOR

MOST_RECORDS = 2048
"""The maximum number of waiting records; further ones are dropped."""
_A_MESSAGE = 100
_MOST_CHARACTERS = 32_000
_MOST_KEYS = 4_000
"""The maximum number of characters of one message's keys."""
_HOLD = 0.5
"""Seconds for which a record waits for others."""
_AT_CLOSE = 3.0
"""Seconds for sending the remaining records when the tracer is closed."""

_log = logging.getLogger(__name__)


class Tracer:
    """Sends trace records; it never delays or fails its caller.

    Args:
        send: stores a message with a body and with keys, separated by spaces.

    Attributes:
        dropped: the number of records that were not sent: too many waited, or no broker accepted
            them.
    """

    def __init__(self, send: Callable[[bytes, str], Awaitable[object]]) -> None:
        self._send = send
        self._waiting: deque[TraceRecord] = deque()
        self._noted, self._is_closing = asyncio.Event(), asyncio.Event()
        self._is_failing = False
        self.dropped = 0
        self._task = asyncio.get_running_loop().create_task(self._run())

    def note(self, record: TraceRecord) -> None:
        """Send a record soon."""
        if len(self._waiting) >= MOST_RECORDS or self._is_closing.is_set():
            self.dropped += 1
            return
        self._waiting.append(record)
        self._noted.set()

    async def close(self) -> None:
        """Send the waiting records, for three seconds at most."""
        self._is_closing.set()
        self._noted.set()
        _, late = await asyncio.wait([self._task], timeout=_AT_CLOSE)
        for task in late:
            task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        self._drop(len(self._waiting), "the tracer was closed")

    async def _run(self) -> None:
        while self._waiting or not self._is_closing.is_set():
            await self._noted.wait()
            self._noted.clear()
            await self._hold()
            while self._waiting:
                await self._send_some()

    async def _hold(self) -> None:
        if len(self._waiting) < _A_MESSAGE and not self._is_closing.is_set():
            try:
                async with asyncio.timeout(_HOLD):
                    await self._is_closing.wait()
            except TimeoutError:
                pass

    async def _send_some(self) -> None:
        records = self._take()
        keys = dict.fromkeys(key for record in records for key in record.keys)
        body = "".join(record.text for record in records).encode()
        try:
            await self._send(body, KEY_SEPARATOR.join(keys))
        except MqlakeError as error:
            self._drop(len(records), str(error))
        except Exception:  # noqa: BLE001 (nobody may fail because of a trace)
            self._drop(len(records), "unexpected")
            _log.exception("traces are not sent")
        else:
            self._is_failing = False

    def _take(self) -> list[TraceRecord]:
        records: list[TraceRecord] = []
        characters = keys = 0
        while self._waiting and len(records) < _A_MESSAGE:
            record = self._waiting[0]
            characters += len(record.text)
            keys += sum(len(key) + 1 for key in record.keys)
            if records and (characters > _MOST_CHARACTERS or keys > _MOST_KEYS):
                break
            records.append(self._waiting.popleft())
        return records

    def _drop(self, count: int, why: str) -> None:
        self.dropped += count
        if count and not self._is_failing:
            _log.warning("%d traces were not sent: %s", count, why)
            self._is_failing = True
