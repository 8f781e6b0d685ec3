"""One case: clients at work with mutated answers, then with good ones."""

from __future__ import annotations

import asyncio
import logging
import random
import resource
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import cast
from unittest import mock

from mqlake.errors import MqlakeError
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import Command
from mqlake.protocol.frames import encode
from mqlake.remoting import turns
from mqlake.remoting.connection import Peer
from mqlake.remoting.stream import inlet
from tests.client.hostile_broker.answers import GoodBroker, empty_pull
from tests.client.hostile_broker.mutations import Mutations
from tests.client.hostile_broker.transport import Link
from tests.client.hostile_broker.users import HandlerError, Users
from tests.client.hostile_broker.virtual_loop import HangError, VirtualLoop
from tests.patience import usual_connections

ANSWERS = 1000
"""Mutated answers of a case."""
MOST_MEMORY = 300 << 20
"""Bytes by which the memory of the process may grow in a case."""
_SUSPEND = 15.0
_CLOSING = 5.0


@dataclass
class Outcome:
    """What a case came to.

    Attributes:
        mutated: answers that were mutated.
        seconds: virtual time that it took.
    """

    seed: int
    mutated: int = 0
    calls: int = 0
    seconds: float = 0.0
    violations: list[str] = field(default_factory=list[str])


class HostileBroker:
    """Answers all requests of a client, mutated while it is hostile.

    Attributes:
        mutated: how many answers were.
    """

    def __init__(self, dice: random.Random) -> None:
        self._dice, self._mutations = dice, Mutations(dice)
        self.good = GoodBroker()
        self.is_hostile = True
        self.mutated = 0

    def connect(self, protocol: asyncio.BaseProtocol) -> asyncio.Transport:
        """Return the transport of a new connection."""
        loop = asyncio.get_running_loop()
        return Link(loop, cast("Peer", protocol), self.serve)

    def serve(self, link: Link, asked: Command) -> None:
        """Answer a request, now or once there is something to read."""
        answer = self.good.answer(asked)
        if answer is None:
            asyncio.get_running_loop().call_later(1.0, self._serve_later, link, asked, _SUSPEND)
        else:
            self._send(link, asked, answer)

    def _serve_later(self, link: Link, asked: Command, left: float) -> None:
        answer = self.good.answer(asked)
        if answer is None and left <= 1.0:
            answer = empty_pull(asked, self.good.end)
        if answer is not None:
            self._send(link, asked, answer)
        elif link.is_open:
            loop = asyncio.get_running_loop()
            loop.call_later(1.0, self._serve_later, link, asked, left - 1.0)

    def _send(self, link: Link, asked: Command, answer: Command) -> None:
        if asked.is_oneway:
            return
        if not self.is_hostile or self._dice.random() < 0.3:
            link.answer(encode(answer))
            return
        self.mutated += 1
        if asked.code == RequestCode.HEART_BEAT and self._dice.random() < 0.2:
            link.answer(self._mutations.unasked())
        link.answer(self._mutations.mutate(answer))

    def add_message(self) -> None:
        """Add a message to each queue."""
        self.good.end += 1


class _Accidents(logging.Handler):
    """Notes exceptions that were logged and are not the client's own."""

    def __init__(self, violations: list[str]) -> None:
        super().__init__()
        self._violations = violations

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if error is not None and not isinstance(error, (MqlakeError, HandlerError)):
            text = logging.Formatter().formatException(record.exc_info or (None, None, None))
            self._violations.append(f"{record.getMessage()}\n{text}")


def command(seed: int) -> str:
    """Return the command that runs a case again."""
    return f"python -m tests.client.hostile_broker --seed {seed}"


def run(seed: int, answers: int = ANSWERS) -> Outcome:
    """Run the case of a seed."""
    dice, outcome = random.Random(seed), Outcome(seed)
    broker = HostileBroker(dice)
    loop = VirtualLoop(broker.connect)
    loop.set_exception_handler(lambda _, context: outcome.violations.append(_text(context)))
    logger, accidents = logging.getLogger("mqlake"), _Accidents(outcome.violations)
    logger.addHandler(accidents)
    was_propagated, logger.propagate = logger.propagate, False
    before, begun = _peak(), loop.time()
    random.seed(seed)  # producers begin at a queue by chance
    try:
        with _no_real_time():
            loop.run_until_complete(_run(broker, Users(dice), answers, outcome))
    except HangError as error:
        outcome.violations.append(str(error))
    finally:
        logger.removeHandler(accidents)
        logger.propagate = was_propagated
        loop.close()
    if (more := _peak() - before) > MOST_MEMORY:
        outcome.violations.append(f"{more >> 20} MiB more memory")
    outcome.seconds = loop.time() - begun
    return outcome


@contextmanager
def _no_real_time() -> Generator[None]:
    """Let connections be served for as long as they have something: then a seed repeats a case."""
    with (
        usual_connections(),
        mock.patch.object(inlet, "perf_counter", return_value=0.0),
        mock.patch.object(turns, "perf_counter", return_value=0.0),
    ):
        yield


async def _run(broker: HostileBroker, users: Users, answers: int, outcome: Outcome) -> None:
    await users.start()
    await users.work(lambda: broker.mutated >= answers)
    broker.is_hostile = False
    await users.recover(broker.add_message)
    await users.close()
    await asyncio.sleep(_CLOSING)
    left = asyncio.all_tasks() - {asyncio.current_task()}
    outcome.violations += users.violations
    outcome.violations += [f"a task is left: {task}" for task in left]
    outcome.mutated, outcome.calls = broker.mutated, users.calls


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def _text(context: dict[str, object]) -> str:
    error = context.get("exception")
    return f"{context.get('message')}: {error!r}"
