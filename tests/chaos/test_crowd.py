"""Many connections at once, and one that does not read."""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, request
from mqlake.protocol.frames import encode
from mqlake.protocol.headers.pull import HAS_SUBSCRIPTION, MAY_SUSPEND
from mqlake.remoting.client import RemotingClient
from tests.broker.pull.pulls import pull_header, pulled
from tests.broker.running import PATIENCE, to
from tests.chaos.clients import Consumer, Producer, check
from tests.programs.forked import ForkedBroker
from tests.programs.processes import BrokerProcess
from tests.remoting.serving import Raw

CONNECTIONS = 2_000
MESSAGES = 40
LARGE = 100_000
"""Bytes of a message of which a pull brings several."""
PULLS = 3_000


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = CONNECTIONS + 500
    if hard != resource.RLIM_INFINITY and hard < wanted:
        pytest.skip(f"a process may open {hard} files here, {wanted} are needed")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    settings = {"mappedFileSizeCommitLog": 8 << 20}
    process = ForkedBroker(tmp_path / "store", tmp_path / "log", settings)
    yield process
    process.kill()
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def resident(process: BrokerProcess) -> int:
    """Return the bytes of memory that a broker has of its own, files that it maps left out."""
    status = Path(f"/proc/{process.process.pid}/status").read_text()
    return int(status.split("RssAnon:")[1].split()[0]) << 10


def patient() -> RemotingClient:
    """Return a client that waits its turn to connect."""
    return RemotingClient(connect_timeout=PATIENCE)


def waiting_pull(queue_id: int, offset: int) -> Command:
    header = pull_header(
        offset,
        queue_id=queue_id,
        sys_flag=HAS_SUBSCRIPTION | MAY_SUSPEND,
        suspend_timeout_millis=int(2 * PATIENCE * 1000),
    )
    return request(RequestCode.PULL_MESSAGE, header)


async def send(client: RemotingClient, address: str, queue_id: int, body: bytes) -> None:
    asked = request(RequestCode.SEND_MESSAGE_V2, to("Orders", queue_id=queue_id), body)
    await client.call(address, asked, PATIENCE)


def test_two_thousand_connections_wait_for_one_message(broker: BrokerProcess) -> None:
    async def run() -> None:
        address, clients = broker.address, [patient() for _ in range(CONNECTIONS)]
        await send(clients[0], address, 0, b"first")
        before = resident(broker)
        answers = asyncio.gather(
            *(client.request(address, waiting_pull(0, 1), 3 * PATIENCE) for client in clients)
        )
        other = patient()
        for number in range(MESSAGES):  # nobody who waits is in the way
            await send(other, address, 1, b"%d" % number)
        await send(other, address, 0, b"second")
        for answer in await answers:
            assert pulled(answer).bodies == [b"second"]
        assert resident(broker) - before < CONNECTIONS * 50_000
        for client in (*clients, other):
            await client.close()

    asyncio.run(run())
    assert broker.stop() == 0, broker.log.read_text()


def test_one_that_does_not_read_slows_nobody_and_takes_no_memory(broker: BrokerProcess) -> None:
    async def run() -> None:
        address, client = broker.address, patient()
        for number in range(MESSAGES):
            await send(client, address, 0, b"%d" % number + bytes(LARGE))
        before = resident(broker)
        raw = await Raw.open(int(address.rpartition(":")[2]))
        pull = encode(request(RequestCode.PULL_MESSAGE, pull_header(max_msg_nums=MESSAGES)))
        raw.writer.write(pull * PULLS)
        producer = Producer(address, "Orders", 1, PATIENCE)
        consumer = Consumer(address, "Orders", 1)
        await producer.send(MESSAGES)
        await consumer.read(producer, MESSAGES)
        check(producer, consumer, 1, MESSAGES)
        assert producer.tries == MESSAGES
        assert resident(broker) - before < 64 << 20
        answer = await raw.command()  # what was written for it can still be read
        assert answer.code == ResponseCode.SUCCESS
        await raw.close()
        await client.close()

    asyncio.run(run())
    assert broker.stop() == 0, broker.log.read_text()
