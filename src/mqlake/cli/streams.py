"""What `produce`, `consume` and `tail` share: lines in, lines out, and the rate on stderr."""

from __future__ import annotations

import signal
import sys
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

import typer

from mqlake.cli.access import chosen
from mqlake.cli.options import UsageError
from mqlake.cli.output import write, write_json
from mqlake.cli.progress import reported_servers
from mqlake.errors import MqlakeError
from mqlake.storage.clock import SystemClock

if TYPE_CHECKING:
    import asyncio

    from mqlake.client import ConsumerSettings, ReceivedMessage
    from mqlake.client.access import ClientAccess

DEFAULT_NAMES = "127.0.0.1:9876"
_POLLED = 256
_EVERY = 1.0
"""Seconds between two progress lines."""
_clock = SystemClock()

T = TypeVar("T")

Names = Annotated[
    str,
    typer.Option(
        "--namesrvAddr",
        "-n",
        envvar="NAMESRV_ADDR",
        metavar="ADDRESSES",
        help="Name servers, host:port, separated by `;`.",
    ),
]
Topic = Annotated[str, typer.Argument(metavar="TOPIC", help="The topic.", show_default=False)]
Tags = Annotated[
    str,
    typer.Option(
        "--tags", metavar="EXPRESSION", help='Only messages with these tags: "paid || refunded".'
    ),
]
Sql92 = Annotated[
    str | None,
    typer.Option(
        "--sql",
        metavar="CONDITION",
        help='Only messages that match this SQL92 filter: "price > 9".',
    ),
]
Most = Annotated[
    int | None,
    typer.Option("--max", metavar="N", min=1, help="Stop after this many messages."),
]


class RateReport:
    """Reports on stderr how many messages were sent or received.

    Args:
        wanted: whether to report; None reports if stderr is a terminal.

    Attributes:
        is_wanted: whether it reports.
        count: the messages so far.
    """

    def __init__(self, verb: str, *, wanted: bool | None) -> None:
        self._verb = verb
        self.is_wanted = sys.stderr.isatty() if wanted is None else wanted
        self._begun = self._said = self._spoke = _clock.monotonic()
        self._said_count = 0
        self.count = 0

    @property
    def seconds(self) -> float:
        """Return the seconds since the start."""
        return _clock.monotonic() - self._begun

    def spoke(self) -> float:
        """Return when it last reported something, or began, in seconds of the system's clock."""
        return self._spoke

    def begin(self, topic: str) -> None:
        """Report that messages are awaited: a topic may get none for a long time."""
        self.tell(f"waiting for messages of {topic}")

    def tell(self, line: str) -> None:
        """Report something else, in a line."""
        if self.is_wanted:
            self._write(f"mqlake: {line}")

    def add(self, count: int = 1) -> None:
        """Count messages, and report the rate once a second."""
        self.count += count
        now = _clock.monotonic()
        if self.is_wanted and now - self._said >= _EVERY:
            rate = (self.count - self._said_count) / (now - self._said)
            self._write(f"{self._verb} {self.count:,}, {rate:,.0f} a second")
            self._said, self._said_count = now, self.count

    def end(self) -> None:
        """Report the total number of messages."""
        if self.is_wanted:
            self._write(f"{self._verb} {self.count:,} in {self.seconds:.1f} s")

    def _write(self, line: str) -> None:
        self._spoke = _clock.monotonic()
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()


def begin_at(where: str) -> int | Literal["first", "last"]:
    """Return the value of `--from`: "first", "last", or milliseconds since 1970.

    Raises:
        UsageError: the value is none of these.
    """
    if where == "earliest":
        return "first"
    if where == "latest":
        return "last"
    if where.isascii() and where.isdigit():
        return int(where)
    raise UsageError(f"--from needs earliest, latest or milliseconds since 1970, not {where!r}")


def check_sql(condition: str) -> None:
    """Refuse a condition that no broker accepts: a consumer would ask again and again.

    Raises:
        UsageError: it is not SQL92 as brokers have it.
    """
    from mqlake.broker.filter.sql92.parser import compile_expression
    from mqlake.broker.filter.sql92.tokens import ExpressionError

    try:
        compile_expression(condition)
    except ExpressionError as error:
        raise UsageError(f"--sql: {error}") from None


def run_reported(work: Callable[[asyncio.Event], Awaitable[T]], shown: RateReport) -> T:
    """Run a coroutine function as `run_until_told`; report the servers that it waits for, and at
    the end the total.
    """
    try:
        with reported_servers(shown.is_wanted, spoke=shown.spoke):
            return run_until_told(work)
    finally:
        shown.end()


def run_until_told(work: Callable[[asyncio.Event], Awaitable[T]]) -> T:
    """Run a coroutine function. SIGINT and SIGTERM set its event, on which it ends cleanly."""
    import asyncio

    async def run() -> T:
        told, loop = asyncio.Event(), asyncio.get_running_loop()
        with _told_by_signals(loop, told):
            return await work(told)

    return asyncio.run(run())


@contextmanager
def _told_by_signals(loop: asyncio.AbstractEventLoop, told: asyncio.Event) -> Generator[None]:
    signals = (signal.SIGINT, signal.SIGTERM)
    for number in signals:
        loop.add_signal_handler(number, told.set)
    try:
        yield
    finally:
        for number in signals:
            loop.remove_signal_handler(number)


async def or_told(work: Awaitable[T], told: asyncio.Event) -> T | None:
    """Return the result of an awaitable, or None if the program is stopped first."""
    import asyncio

    task = asyncio.ensure_future(work)
    waiting = asyncio.ensure_future(told.wait())
    try:
        await asyncio.wait((task, waiting), return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        return None
    finally:
        for each in (task, waiting):
            each.cancel()
        await asyncio.gather(task, waiting, return_exceptions=True)


async def read_all_queues(
    names: str,
    topic: str,
    wanted: str,
    settings: ConsumerSettings,
    *,
    most: int | None,
    told: asyncio.Event,
    shown: RateReport,
    as_json: bool,
) -> None:
    """Write the messages of all queues of a topic; nothing is committed.

    Args:
        most: the number of messages; None to continue until the program is stopped.
    """
    from mqlake.client import NoRouteError, PullConsumer

    access = chosen()
    async with PullConsumer(
        names, settings=settings, credentials=access.credentials, tls=access.tls
    ) as consumer:
        try:
            queues = await consumer.queues_of(topic)
        except NoRouteError as error:
            raise NoRouteError(f"{error}{await _nearest(names, topic, access)}") from None
        consumer.assign(queues, wanted)
        shown.begin(topic)
        while not told.is_set() and (most is None or shown.count < most):
            left = _POLLED if most is None else min(_POLLED, most - shown.count)
            for message in await or_told(consumer.poll(most=left), told) or ():
                write_message(message, as_json=as_json)
                shown.add()


async def _nearest(names: str, topic: str, access: ClientAccess) -> str:
    """Return the name of the most similar topic, as the end of an error; "" if none is similar."""
    from mqlake.admin import Admin, topics
    from mqlake.query.reading.losses import is_internal
    from mqlake.query.reading.parsing import is_near, nearest

    try:
        async with Admin(names, tls=access.tls, credentials=access.credentials) as admin:
            known = [name for name in await topics.names(admin) if not is_internal(name)]
    except MqlakeError:
        return ""
    near = nearest(topic, known) if known else ""
    return f"; the nearest is {near}" if near and is_near(topic, near) else ""


def write_message(message: ReceivedMessage, *, as_json: bool) -> None:
    """Write one message: its body and a line end, or a JSON object."""
    from mqlake.client.message_json import message_to_json

    if as_json:
        write_json(message_to_json(message))
    else:
        write(message.body + b"\n")
