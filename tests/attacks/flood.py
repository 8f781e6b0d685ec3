"""Connections of an attacker: many requests on each, and what they are answered."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import asynccontextmanager

from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import Command, request
from mqlake.protocol.frames import encode
from mqlake.remoting.limits import Limits
from mqlake.remoting.stream.frame_reader import FrameReader
from tests.attacks.broker_process import Attack
from tests.broker.running import PATIENCE

_AT_ONCE = 200
"""Requests that are written before the broker is waited for."""


class Attacker:
    """One connection.

    Attributes:
        answers: how often each request was answered, by its number.
        codes: how often each code was answered.
        remarks: those of answers that were refused, some of each.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._frames = FrameReader(Limits(frame=1 << 28))
        self._sent = 0
        self.answers: Counter[int] = Counter()
        self.codes: Counter[int] = Counter()
        self.remarks: set[str] = set()
        self._task = asyncio.create_task(self._read())

    async def send(self, requests: Iterable[Command]) -> None:
        """Send requests, numbered from where the last ones ended."""
        for number, asked in enumerate(requests, 1):
            self._sent += 1
            asked.opaque = self._sent
            self._writer.write(encode(asked))
            if number % _AT_ONCE == 0:
                await self._writer.drain()
        await self._writer.drain()

    async def answered(self, count: int | None = None) -> None:
        """Wait until so many answers have come, one to each request without `count`.

        No request may have been answered twice.
        """
        wanted = self._sent if count is None else count
        async with asyncio.timeout(3 * PATIENCE):
            while self.answers.total() < wanted:
                assert not self._task.done(), "the connection was lost"
                await asyncio.sleep(0.01)
        assert max(self.answers.values(), default=0) <= 1, "a request was answered twice"

    async def settle(self) -> None:
        """Wait until all that was sent before has been read."""
        await self.send([request(RequestCode.GET_ALL_TOPIC_CONFIG)])
        number = self._sent
        async with asyncio.timeout(3 * PATIENCE):
            while not self.answers[number]:
                assert not self._task.done(), "the connection was lost"
                await asyncio.sleep(0.01)

    async def ask(self, asked: Command) -> str:
        """Send a request and wait for all answers; return the remark of a refusal, "" for none."""
        self.remarks.clear()
        await self.send([asked])
        await self.answered()
        return next(iter(self.remarks), "")

    def close(self) -> None:
        """Be gone without a word."""
        self._task.cancel()
        self._writer.transport.abort()

    async def _read(self) -> None:
        while data := await self._reader.read(1 << 20):
            for answer in self._frames.feed(data):
                if not answer.is_response:
                    continue
                self.answers[answer.opaque] += 1
                self.codes[answer.code] += 1
                if answer.code and answer.remark and len(self.remarks) < 10:
                    self.remarks.add(answer.remark)


@asynccontextmanager
async def attackers(
    attack: Attack, count: int = 1, *, port: int = 0
) -> AsyncGenerator[list[Attacker]]:
    """Connect so many times, to the broker or to another port of its process."""
    port = port or attack.port
    made = [Attacker(*await asyncio.open_connection("127.0.0.1", port)) for _ in range(count)]
    try:
        yield made
    finally:
        for one in made:
            one.close()


def group_names(count: int, start: int = 0) -> Iterator[str]:
    """Yield the names of groups."""
    return (f"attacker-{number}" for number in range(start, start + count))
