"""`mqlake broker` as a process: start, stop, kill."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections import defaultdict
from pathlib import Path

import pytest

from mqlake.broker.settings import make_broker_settings
from mqlake.errors import MqlakeError
from mqlake.formats.record import Record
from mqlake.programs.broker import BrokerProgram
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import request
from mqlake.protocol.headers.namesrv import GetRouteInfoHeader
from mqlake.protocol.headers.send import SendMessageResponseHeader
from mqlake.remoting.client import RemotingClient
from mqlake.remoting.errors import ConnectionFailedError
from tests.broker.running import PATIENCE, Running, running, to
from tests.programs.processes import BrokerProcess
from tests.until import until

PRODUCERS = 8
QUEUES = 4
SENT_BEFORE_THE_END = 400
KILLS = 25


class Producer:
    """Sends numbered messages to one queue, one after the other, until the broker is gone.

    Attributes:
        acknowledged: bodies that were acknowledged, by queue offset.
    """

    def __init__(self, number: int) -> None:
        self._number, self.queue_id = number, number % QUEUES
        self.acknowledged: dict[int, bytes] = {}

    async def send(self, client: RemotingClient, address: str) -> None:
        for count in range(1_000_000):
            body = b"%d:%d" % (self._number, count)
            command = request(
                RequestCode.SEND_MESSAGE_V2, to("Orders", queue_id=self.queue_id), body
            )
            try:
                answer = await client.request(address, command, PATIENCE)
            except ConnectionFailedError:
                return
            if answer.code == ResponseCode.SUCCESS:
                told = answer.header(SendMessageResponseHeader)
                self.acknowledged[told.queue_offset] = body


async def load(process: BrokerProcess, first: int = 0) -> list[Producer]:
    """Send from many producers, numbered from `first` on, and kill the broker meanwhile."""
    producers = [Producer(first + number) for number in range(PRODUCERS)]
    clients = [RemotingClient(connect_timeout=PATIENCE) for _ in producers]
    sending = asyncio.gather(
        *(p.send(c, process.address) for p, c in zip(producers, clients, strict=True))
    )
    while sum(len(p.acknowledged) for p in producers) < SENT_BEFORE_THE_END:
        await asyncio.sleep(0.01)
        assert process.process.poll() is None, process.log.read_text()
    process.process.kill()
    await sending
    for client in clients:
        await client.close()
    process.process.wait()
    return producers


def check(broker: Running, producers: list[Producer]) -> dict[int, list[Record]]:
    """Return the messages of each queue; fail if one is missing, twice there, or misplaced."""
    queues = {queue: broker.records("Orders", queue) for queue in range(QUEUES)}
    for producer in producers:
        found = {record.queue_offset: record.body for record in queues[producer.queue_id]}
        assert producer.acknowledged.items() <= found.items()
    for records in queues.values():
        assert [record.queue_offset for record in records] == list(range(len(records)))
        assert in_order(records)
    return queues


@pytest.mark.parametrize("flush", ["SYNC_FLUSH", "ASYNC_FLUSH"])
def test_a_killed_broker_loses_nothing_that_it_acknowledged(tmp_path: Path, flush: str) -> None:
    async def run() -> None:
        store, settings = tmp_path / "store", {"flushDiskType": flush}
        producers = await load(BrokerProcess(store, tmp_path / "log", settings))
        async with running(store, **settings) as broker:
            queues = check(broker, producers)
            # Who comes next goes on behind them.
            answer = await broker.send(to("Orders", queue_id=1), b"next")
            told = answer.header(SendMessageResponseHeader)
            assert told.queue_offset == len(queues[1])

    asyncio.run(run())


@pytest.mark.nightly
def test_a_broker_that_is_killed_again_and_again_loses_nothing(tmp_path: Path) -> None:
    async def run() -> None:
        store, settings = tmp_path / "store", {"flushDiskType": "SYNC_FLUSH"}
        producers: list[Producer] = []
        for _ in range(KILLS):
            process = BrokerProcess(store, tmp_path / "log", settings)
            producers += await load(process, first=len(producers))
        async with running(store, **settings) as broker:
            check(broker, producers)

    asyncio.run(run())


def in_order(records: list[Record]) -> bool:
    """Say whether each producer's messages lie as it sent them, none twice."""
    numbers: defaultdict[bytes, list[int]] = defaultdict(list)
    for record in records:
        producer, _, count = record.body.partition(b":")
        numbers[producer].append(int(count))
    return all(counts == list(range(len(counts))) for counts in numbers.values())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it_in_good_order(tmp_path: Path, number: signal.Signals) -> None:
    async def ask(process: BrokerProcess) -> None:
        client = RemotingClient(connect_timeout=PATIENCE)

        async def route(topic: str) -> int:
            asked = request(RequestCode.GET_ROUTEINFO_BY_TOPIC, GetRouteInfoHeader(topic=topic))
            return (await client.request(process.name_server, asked, PATIENCE)).code

        try:
            send = request(RequestCode.SEND_MESSAGE_V2, to("Orders"), b"x")
            await client.call(process.address, send, PATIENCE)
            # The name server is told beside the answer, not before it.

            async def is_known() -> bool:
                return await route("Orders") == ResponseCode.SUCCESS

            await until(is_known)
            assert await route("Other") == ResponseCode.TOPIC_NOT_EXIST
        finally:
            await client.close()

    store = tmp_path / "store"
    process = BrokerProcess(store, tmp_path / "log", {"noSuchName": 1})
    asyncio.run(ask(process))
    assert process.stop(number) == 0
    assert not (store / "abort").exists()
    log = process.log.read_text()
    assert "setting noSuchName is not known" in log
    assert "ready after" in log
    assert log.splitlines()[-1].endswith("stopped")


DYING = """
from mqlake.store.services import Services
from pathlib import Path
due = Services.due
def die(services):
    if Path({path!r}).exists():
        raise ValueError("odd")
    return due(services)
Services.due = die
"""


def test_a_broker_whose_store_fails_ends_by_itself(tmp_path: Path) -> None:
    async def ask(process: BrokerProcess) -> None:
        client = RemotingClient(connect_timeout=PATIENCE)
        send = request(RequestCode.SEND_MESSAGE_V2, to("Orders"), b"kept")
        await client.call(process.address, send, PATIENCE)
        await client.close()

    store, sign = tmp_path / "store", tmp_path / "die"
    process = BrokerProcess(store, tmp_path / "log", {}, DYING.format(path=str(sign)))
    try:
        asyncio.run(ask(process))
        sign.touch()
        assert process.process.wait(PATIENCE) == 2
    finally:
        process.kill()
    lines = process.log.read_text().splitlines()
    assert any("ValueError: odd" in line for line in lines)
    assert lines[-1].startswith("mqlake: the store's service task has ended: ValueError: odd")
    assert "Orders" in (store / "config" / "topics.json").read_text()
    # The next start recovers what was acknowledged.
    sign.unlink()
    process.start()
    assert process.stop() == 0
    assert not (store / "abort").exists()


def test_a_broker_that_cannot_start_prints_one_line(tmp_path: Path) -> None:
    first = BrokerProcess(tmp_path / "store", tmp_path / "log", {})
    try:
        with pytest.raises(RuntimeError, match="no broker") as failure:
            BrokerProcess(tmp_path / "store", tmp_path / "log2", {})
    finally:
        first.stop()
    (line,) = [line for line in str(failure.value).splitlines() if line.startswith("mqlake: ")]
    assert "lock" in line


def test_a_name_server_that_cannot_start_says_what_to_do(tmp_path: Path) -> None:
    async def run() -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            settings = make_broker_settings({"storePathRootDir": str(tmp_path)})
            program = BrokerProgram(settings, taken.getsockname()[1])
            with pytest.raises(MqlakeError, match="Address already in use; name a running one"):
                await program.__aenter__()

    asyncio.run(run())
