"""Run a broker and a name server in a thread of this process."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from mqlake.broker.broker import Broker
from mqlake.broker.settings import FAST_PORT_DISTANCE
from mqlake.client.blocking import Consumer, Producer, Topics
from mqlake.client.consumer.settings import ConsumerSettings
from mqlake.programs.broker import BrokerProgram, starting_settings
from mqlake.programs.ports import free_port
from mqlake.programs.serve import loop_factory
from mqlake.storage.clock import SystemClock
from mqlake.testing.advanced_clock import AdvancedClock

T = TypeVar("T")

_SMALL: dict[str, object] = {
    "mappedFileSizeCommitLog": 64 << 20,
    "maxHashSlotNum": 100_000,
    "maxIndexNum": 400_000,
    "brokerName": "broker-a",
    "channelExpiredTimeout": 86_400_000,  # clients expire only after `advance` by a day
}


class RunningBroker:
    """A broker that runs in a thread of this process.

    Attributes:
        address: the address of the broker, "ip:port".
        name_server: the address of its name server, "ip:port".
        grpc: the address for gRPC clients, "ip:port"; None if they are not served.
        store: the directory of its store.
    """

    def __init__(self, program: BrokerProgram, clock: AdvancedClock) -> None:
        self._clock = clock
        settings = program.broker.settings
        self.address, self.name_server = settings.broker_address, program.name_servers
        port = settings.grpc_server_port
        self.grpc = f"{settings.broker_address.rpartition(':')[0]}:{port}" if port else None
        self.store = settings.store_path
        self._broker = program.broker
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()

    def call(self, function: Callable[[Broker], Awaitable[T]]) -> T:
        """Run a coroutine function with the broker, in its event loop; return the result."""

        async def run() -> T:
            return await function(self._broker)

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result()

    def advance(self, seconds: float) -> None:
        """Advance the broker's clock. What is due by then is done within a moment.

        Messages with a delay or a delivery time are delivered, and so are those that a consumer had
        redelivered; popped messages become visible; expired messages are removed. Clients use the
        real time, and so do the intervals at which a broker checks transactions.

        Raises:
            ValueError: the time is negative.
        """
        self._clock.advance(seconds)

    def producer(self, **options: Any) -> Producer:
        """Return a producer for this broker, to be used with `with`.

        A send may take 30 seconds, unless `timeout` says otherwise: test machines can be slow.
        """
        options.setdefault("timeout", 30.0)
        return Producer(self.name_server, **options)

    def consumer(self, group: str, topics: Topics, **options: Any) -> Consumer:
        """Return a consumer for this broker, to be used with `with`.

        It begins at the first message, unless `settings` say otherwise.
        """
        options.setdefault("settings", ConsumerSettings(consume_from="first"))
        return Consumer(self.name_server, group, topics, **options)

    def stop(self) -> None:
        """Stop the broker; the end of the block waits for that."""
        self._loop.call_soon_threadsafe(self._stop.set)

    async def stopped(self) -> None:
        """Wait, in the broker's event loop, until the broker must stop."""
        await self._stop.wait()


@contextmanager
def broker(
    store: Path | str | None = None, *, grpc: bool = False, **settings: object
) -> Generator[RunningBroker]:
    """Run a broker and a name server until the block ends.

    Args:
        store: directory of the store; if None, a new one that is removed at the end.
        grpc: whether gRPC clients are served, too, on a free port (`RunningBroker.grpc`); this
            needs `pip install 'mqlake[store,grpc]'`.
        settings: by their names in `broker.conf`; without `listenPort`, a free port is chosen.

    Raises:
        MqlakeError: a setting is wrong, or the broker cannot be started, or does not stop cleanly.
    """
    if store is None:
        with (
            tempfile.TemporaryDirectory(prefix="mqlake-") as directory,
            broker(directory, grpc=grpc, **settings) as running,
        ):
            yield running
        return
    chosen: dict[str, object] = {
        **_SMALL,
        "listenPort": free_port(-FAST_PORT_DISTANCE, 1),
        "grpcServerPort": free_port() if grpc else 0,
        "storePathRootDir": str(store),
        **settings,
    }
    clock = AdvancedClock()
    # Clients do not advance with the broker: their pops would seem to have waited since long.
    client_time = SystemClock().milliseconds
    program = BrokerProgram(
        starting_settings(chosen), namesrv_port=0, clock=clock, client_time=client_time
    )
    started: Future[RunningBroker] = Future()
    with ThreadPoolExecutor(1, "mqlake-broker") as thread:
        ended = thread.submit(_run, program, clock, started)
        try:
            running = started.result()
        except BaseException:  # Interrupted, perhaps: the end of the block waits for the thread.
            started.add_done_callback(_stop)
            raise
        try:
            yield running
        finally:
            running.stop()
            ended.result()


def _stop(started: Future[RunningBroker]) -> None:
    """Stop a broker that nobody waits for any more."""
    if started.exception() is None:
        started.result().stop()


def _run(program: BrokerProgram, clock: AdvancedClock, started: Future[RunningBroker]) -> None:
    try:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            runner.run(_serve(program, clock, started))
    except BaseException as error:
        if started.done():
            raise
        started.set_exception(error)


async def _serve(
    program: BrokerProgram, clock: AdvancedClock, started: Future[RunningBroker]
) -> None:
    async with program:
        running = RunningBroker(program, clock)
        started.set_result(running)
        await running.stopped()
