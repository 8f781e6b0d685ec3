"""Brokers as processes and name servers as objects, which can leave and return."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

from mqlake.client import MessageQueue
from mqlake.client.cluster import Cluster
from mqlake.errors import MqlakeError
from mqlake.namesrv.name_server import NameServer
from mqlake.namesrv.settings import NamesrvSettings
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import request
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.headers.admin import CreateTopicHeader
from mqlake.protocol.headers.offsets import OffsetHeader, QueryConsumerOffsetHeader, QueueHeader
from mqlake.remoting.client import RemotingClient
from mqlake.remoting.errors import ConnectionFailedError, RequestTimeoutError
from tests.broker.running import PATIENCE
from tests.client.ledger import Ledger
from tests.programs.forked import ForkedBroker
from tests.programs.processes import BrokerProcess

READ_WRITE = 6
_SIZES = {
    "mappedFileSizeCommitLog": 64 << 20,
    "mappedFileSizeConsumeQueue": 6_000_000,
    "maxHashSlotNum": 10_000,
    "maxIndexNum": 40_000,
}


def start_broker(
    directory: Path, name: str, name_servers: str, settings: Mapping[str, object]
) -> BrokerProcess:
    """Start a broker whose store and log are in a directory of its own."""
    home = directory / name
    home.mkdir(parents=True)
    chosen = {**_SIZES, "brokerName": name, "namesrvAddr": name_servers, **settings}
    return ForkedBroker(home / "store", home / "log", chosen)


async def create_topic(address: str, topic: str, queues: int, seconds: float = PATIENCE) -> None:
    """Create a topic on a broker, which answers within some seconds."""
    header = CreateTopicHeader(
        topic=topic,
        read_queue_nums=queues,
        write_queue_nums=queues,
        perm=READ_WRITE,
        topic_filter_type="SINGLE_TAG",
    )
    async with Cluster("") as cluster:
        await cluster.ask(address, RequestCode.UPDATE_AND_CREATE_TOPIC, header, seconds=seconds)


async def wait_for_dispatch(address: str, topic: str, ends: Mapping[int, int]) -> None:
    """Wait until the queues of a topic reach these offsets; a send is acknowledged before."""
    async with Cluster("") as cluster, asyncio.timeout(PATIENCE):
        for queue, end in ends.items():
            header = QueueHeader(topic=topic, queue_id=queue)
            while True:
                answer = await cluster.ask(address, RequestCode.GET_MAX_OFFSET, header)
                if answer.header(OffsetHeader).offset >= end:
                    break
                await asyncio.sleep(0.01)


class RestartableNameServer:
    """A name server on a fixed port, which forgets everything when it is stopped."""

    def __init__(self, port: int) -> None:
        self.address = f"127.0.0.1:{port}"
        self._settings = NamesrvSettings(bind_address="127.0.0.1", listen_port=port)
        self._server: NameServer | None = None

    async def start(self) -> None:
        self._server = NameServer(self._settings)
        await self._server.start()

    async def stop(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            await server.stop()


async def watch_offsets(
    brokers: Mapping[str, str], group: str, topics: Mapping[str, int], ledger: Ledger
) -> None:
    """Note a group's committed offsets again and again, until this is cancelled.

    Args:
        brokers: addresses of brokers, by name.
        topics: the number of queues that each topic has on each broker.
    """
    client = RemotingClient(connect_timeout=PATIENCE)
    places = [
        (address, MessageQueue(topic, name, number))
        for name, address in brokers.items()
        for topic, queues in topics.items()
        for number in range(queues)
    ]
    try:
        while True:
            for address, queue in places:
                await _note_offset(client, address, group, queue, ledger)
            await asyncio.sleep(0.05)
    finally:
        await client.close()


async def _note_offset(
    client: RemotingClient, address: str, group: str, queue: MessageQueue, ledger: Ledger
) -> None:
    try:
        ledger.observe(queue, await committed(client, address, group, queue))
    except (RemotingError, ConnectionFailedError, RequestTimeoutError):
        await asyncio.sleep(0.01)  # the group has no offset yet, or the broker is away


async def committed(client: RemotingClient, address: str, group: str, queue: MessageQueue) -> int:
    """Return a group's committed offset.

    Raises:
        RemotingError: the group has none.
    """
    header = QueryConsumerOffsetHeader(
        consumer_group=group, topic=queue.topic, queue_id=queue.queue_id
    )
    answer = await client.call(address, request(RequestCode.QUERY_CONSUMER_OFFSET, header), 1.0)
    return answer.header(OffsetHeader).offset


async def lag(address: str, group: str, topics: Mapping[str, int]) -> list[str]:
    """Return the queues of a broker that a group has not consumed to their ends, one line each."""
    client, found = RemotingClient(connect_timeout=PATIENCE), list[str]()
    for topic, queues in topics.items():
        for number in range(queues):
            header = QueueHeader(topic=topic, queue_id=number)
            try:
                asked = request(RequestCode.GET_MAX_OFFSET, header)
                end = (await client.call(address, asked, PATIENCE)).header(OffsetHeader).offset
                queue = MessageQueue(topic, "", number)
                offset = await committed(client, address, group, queue) if end else 0
            except MqlakeError as error:
                found.append(f"{topic}/{number}: {error}")
            else:
                if offset != end:
                    found.append(f"{topic}/{number}: {offset} of {end}")
    await client.close()
    return found
