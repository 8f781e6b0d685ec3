"""A well-behaved client, in a process of its own: it sends and pulls, and times the answers."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple, Self

from mqlake.errors import MqlakeError
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, request
from mqlake.protocol.headers.pull import HAS_SUBSCRIPTION, MAY_SUSPEND
from mqlake.remoting.client import RemotingClient
from tests.attacks.size import IS_WHOLE
from tests.broker.pull.pulls import pull_header, pulled
from tests.broker.running import PATIENCE, to

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
        self._command = [sys.executable, "-m", __name__, address]
        self._log = log

    def __enter__(self) -> Self:
        with self._log.open("a") as errors:
            self._process = subprocess.Popen(
                self._command, stdout=subprocess.PIPE, stderr=errors, text=True
            )
        assert self._process.stdout
        if not self._process.stdout.readline():
            raise RuntimeError(f"the well-behaved client ended: {self._log.read_text()}")
        return self

    def __exit__(self, *failure: object) -> None:
        self._process.kill()
        self._process.communicate()

    def stop(self) -> Service:
        """Let the last request be answered; return what became of all of them."""
        self._process.send_signal(signal.SIGTERM)
        output, _ = self._process.communicate(timeout=2 * PATIENCE)
        if not output:
            raise RuntimeError(f"the well-behaved client ended: {self._log.read_text()}")
        return Service(*json.loads(output))


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


async def _run(address: str) -> None:
    client, stop = _Client(address), asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    number = 0
    while not stop.is_set():
        if number == _WARM_UP:
            client.answers, client.slowest = 0, 0.0
            print("warm", flush=True)
        try:
            await client.send_and_pull(number)
        except MqlakeError as error:
            client.failures.append(str(error))
            break
        number += 1
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), _PAUSE)
    print(json.dumps((client.answers, client.slowest, client.failures)), flush=True)


if __name__ == "__main__":
    asyncio.run(_run(sys.argv[1]))
