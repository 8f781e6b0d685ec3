"""A well-behaved client, in a process of its own: it sends and pulls, and times the answers."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple, Self

from mqlake.errors import MqlakeError
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, request
from mqlake.protocol.headers.pull import HAS_SUBSCRIPTION, MAY_SUSPEND
from mqlake.remoting.client import RemotingClient
from tests.attacks.size import IS_WHOLE
from tests.broker.pull.pulls import pull_header, pulled
from tests.broker.running import PATIENCE, to
from tests.programs.forked import Forked, log_to, pipe

TOPIC = "Honest"
_LARGE = 1 << 20
"""Bytes of every eighth message: more than comes in with one read."""
_PAUSE = 0.01 if IS_WHOLE else 0.05
"""Seconds between two messages."""
_WARM_UP = 10


class Service(NamedTuple):
    """What became of the client's requests.

    Attributes:
        answers: how many were answered as they should be.
        slowest: seconds that the slowest answer took; a busy machine lengthens it.
        failures: what was wrong with the others.
    """

    answers: int
    slowest: float
    failures: list[str]


class HonestClient:
    """Starts the client, and stops it; it is warm, and has been served, once the block begins."""

    def __init__(self, address: str, log: Path) -> None:
        self._address, self._log = address, log

    def __enter__(self) -> Self:
        self._reports, theirs = pipe(duplex=False)
        self._process = Forked(_be_client, self._address, theirs, self._log)
        theirs.close()
        self._report(None)
        return self

    def __exit__(self, *failure: object) -> None:
        self._process.kill()
        self._process.wait()
        self._reports.close()

    def stop(self) -> Service:
        """Let the last request be answered; return what became of all of them."""
        self._process.send_signal(signal.SIGTERM)
        return Service(*self._report(2 * PATIENCE))

    def _report(self, seconds: float | None) -> Any:
        try:
            if not self._reports.poll(seconds):
                raise TimeoutError("the well-behaved client does not stop")
            return self._reports.recv()
        except EOFError:
            log = self._log.read_text()
            raise RuntimeError(f"the well-behaved client ended: {log}") from None


class _Client:
    def __init__(self, address: str) -> None:
        self._address, self._client = address, RemotingClient()
        self.answers, self.slowest, self.failures = 0, 0.0, list[str]()

    async def send_and_pull(self, number: int) -> None:
        """Send a message, and pull it while it may not yet have arrived."""
        body = b"%d:" % number + b"x" * (_LARGE if number % 8 == 7 else 100)
        header = pull_header(
            number,
            topic=TOPIC,
            sys_flag=HAS_SUBSCRIPTION | MAY_SUSPEND,
            suspend_timeout_millis=int(PATIENCE * 1000),
        )
        sent = request(RequestCode.SEND_MESSAGE_V2, to(TOPIC), body)
        if number:
            pull = asyncio.ensure_future(self._ask(request(RequestCode.PULL_MESSAGE, header)))
            answers = await asyncio.gather(self._ask(sent), pull)
        else:  # makes the topic
            answers = [await self._ask(sent)]
            answers.append(await self._ask(request(RequestCode.PULL_MESSAGE, header)))
        bodies = pulled(answers[1]).bodies
        if bodies != [body]:
            self.failures.append(f"message {number}: {len(bodies)} others were pulled")

    async def _ask(self, asked: Command) -> Command:
        code, begin = asked.code, time.perf_counter()
        answer = await self._client.request(self._address, asked, PATIENCE)
        self.slowest = max(self.slowest, time.perf_counter() - begin)
        self.answers += 1
        if answer.code != ResponseCode.SUCCESS:
            self.failures.append(f"request {code}: {answer.code} {answer.remark}")
        return answer


async def _run(address: str, reports: Connection) -> None:
    client, stop = _Client(address), asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    number = 0
    while not stop.is_set():
        if number == _WARM_UP:
            client.answers, client.slowest = 0, 0.0
            reports.send("warm")
        try:
            await client.send_and_pull(number)
        except MqlakeError as error:
            client.failures.append(str(error))
            break
        number += 1
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), _PAUSE)
    reports.send((client.answers, client.slowest, client.failures))


def _be_client(address: str, reports: Connection, log: Path) -> None:
    """Be the client; report that it is warm, and once stopped, what became of its requests."""
    log_to(log)
    asyncio.run(_run(address, reports))
