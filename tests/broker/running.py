"""A broker on free ports, and a client of it, in the event loop of a test."""

from __future__ import annotations

import random
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager
from itertools import islice
from pathlib import Path

from mqlake.broker.broker import Broker
from mqlake.broker.runtime import BrokerRuntime
from mqlake.broker.settings import FAST_PORT_DISTANCE, make_broker_settings
from mqlake.broker.state.broker_state import BrokerState
from mqlake.formats.record import Record
from mqlake.programs import ports
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import Command, request
from mqlake.protocol.header import Header
from mqlake.protocol.headers.send import SendMessageHeaderV2
from mqlake.remoting.client import RemotingClient
from mqlake.storage.clock import Clock

SMALL = {
    "mappedFileSizeCommitLog": 1 << 20,
    "mappedFileSizeConsumeQueue": 2000,
    "maxHashSlotNum": 100,
    "maxIndexNum": 400,
    "brokerName": "broker-a",
}


PATIENCE = 200.0
"""Seconds to wait for an answer: kernels may have to be compiled."""

# However slow the disk, sends are acknowledged.
_PATIENT = {"syncFlushTimeout": int(PATIENCE * 1000)}


def _ports() -> Iterator[int]:
    """Yield this process's share of the ports that a system does not use for clients.

    Each broker also uses those at -2 and 1 from its own.
    """
    share = ports.PORTS[2:-1:4]
    at = random.randrange(len(share))
    while True:
        yield share[at]
        at = (at + 1) % len(share)


_next_ports = _ports()


def next_port() -> int:
    """Return a free port for a broker, which is offered to no other one of this test run.

    A free port that is chosen at random may be chosen by two brokers that start at the same time.
    """
    for port in islice(_next_ports, 1000):
        with ExitStack() as held:
            try:
                for each in (port, port - FAST_PORT_DISTANCE, port + 1):
                    held.enter_context(socket.socket()).bind(("127.0.0.1", each))
            except OSError:
                continue
            return port
    raise AssertionError("no free port")


class Running:
    """A broker that runs, and one connection to it."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.client = RemotingClient(connect_timeout=PATIENCE)

    @property
    def state(self) -> BrokerState:
        return self.broker.state

    @property
    def runtime(self) -> BrokerRuntime:
        return self.broker.runtime

    @property
    def address(self) -> str:
        return self.broker.settings.broker_address

    async def ask(self, code: int, header: Header | None = None, body: bytes = b"") -> Command:
        """Return the response to a request, whatever its code."""
        return await self.client.request(self.address, request(code, header, body), PATIENCE)

    async def send(self, header: SendMessageHeaderV2, body: bytes = b"hello") -> Command:
        """Return the response to a send."""
        return await self.ask(RequestCode.SEND_MESSAGE_V2, header, body)

    def records(self, topic: str, queue_id: int = 0) -> list[Record]:
        """Return what consumers would read of a queue."""
        self.state.store.core.tick()
        found: list[Record] = []
        while batch := self.state.store.get(topic, queue_id, len(found), 1000).records:
            found += batch
        return found


@asynccontextmanager
async def running(
    path: Path, config: Path | None = None, *, clock: Clock | None = None, **settings: object
) -> AsyncIterator[Running]:
    """Run a broker on a store in `path`; settings under the names of `broker.conf`."""
    chosen = (
        SMALL
        | _PATIENT
        | {
            "listenPort": next_port(),
            "storePathRootDir": str(path),
            **settings,
        }
    )
    async with Broker(make_broker_settings(chosen), config, clock=clock) as broker:
        found = Running(broker)
        try:
            yield found
        finally:
            await found.client.close()


def to(topic: str, **fields: object) -> SendMessageHeaderV2:
    """Return the header of a send."""
    known: dict[str, object] = {
        "producer_group": "producers",
        "topic": topic,
        "default_topic": "TBW102",
        "default_topic_queue_nums": 4,
        "queue_id": 0,
        "sys_flag": 0,
        "born_timestamp": 1_700_000_000_000,
        "flag": 0,
    }
    return SendMessageHeaderV2(**(known | fields))  # pyright: ignore[reportArgumentType]
