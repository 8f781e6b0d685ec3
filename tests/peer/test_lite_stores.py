"""mqlake's broker takes over stores with lite topics from RocketMQ's."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from mqlake.protocol.bodies.lite import (
    LiteOffsetOption,
    LiteSubscriptionChange,
    LiteSubscriptionChanges,
)
from mqlake.protocol.body import encode_body
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, request
from mqlake.protocol.headers.admin import CreateTopicHeader
from mqlake.protocol.headers.lite import PopLiteHeader
from mqlake.protocol.headers.send import SendMessageHeaderV2
from mqlake.remoting.client import RemotingClient
from mqlake.storage.clock import SystemClock
from mqlake.testing import broker
from tests.broker.lite.lites import ack_header, popped
from tests.peer.java_build import JavaMissingError
from tests.peer.rocketmq_cluster import Cluster
from tests.until import PATIENCE

pytestmark = [pytest.mark.peer, pytest.mark.timeout(600)]

TOPIC, FIRST = "Sessions", 1
SETTINGS: dict[str, object] = {
    "brokerName": "broker-a",
    "enableLmq": "true",
    "mappedFileSizeCommitLog": 1 << 24,
    "mappedFileSizeConsumeQueue": 20_000,
    "maxHashSlotNum": 10_000,
    "maxIndexNum": 40_000,
}
LITES = ("a", "b")


class LiteUser:
    """Sends to the lite topics of one broker, and consumes them."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._client = RemotingClient(connect_timeout=PATIENCE)

    async def close(self) -> None:
        await self._client.close()

    async def _ask(self, asked: Command) -> Command:
        answer = await self._client.request(self._address, asked, PATIENCE)
        assert answer.code == ResponseCode.SUCCESS, answer.remark
        return answer

    async def create(self, group: str) -> None:
        """Create the parent topic, and a group that consumes its lite topics."""
        header = CreateTopicHeader(
            topic=TOPIC,
            default_topic="TBW102",
            read_queue_nums=2,
            write_queue_nums=2,
            perm=6,
            topic_filter_type="SINGLE_TAG",
            attributes="+message.type=LITE",
        )
        await self._ask(request(RequestCode.UPDATE_AND_CREATE_TOPIC, header))
        wanted = {"groupName": group, "attributes": {"+lite.bind.topic": TOPIC}}
        body = json.dumps(wanted).encode()
        await self._ask(request(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=body))

    async def send(self, numbers: Sequence[int]) -> None:
        """Send messages to each lite topic."""
        for number in numbers:
            for lite in LITES:
                properties = f"UNIQ_KEY\x01{lite}{number}\x02__LITE_TOPIC\x01{lite}\x02"
                header = SendMessageHeaderV2(
                    producer_group="p",
                    topic=TOPIC,
                    default_topic="TBW102",
                    default_topic_queue_nums=4,
                    queue_id=0,
                    sys_flag=0,
                    born_timestamp=SystemClock().milliseconds(),
                    flag=0,
                    properties=properties,
                )
                body = f"{lite}{number}".encode()
                await self._ask(request(RequestCode.SEND_MESSAGE_V2, header, body))

    async def consume(self, group: str, lite: str, count: int) -> list[tuple[int, str]]:
        """Return the first messages of a lite topic, with their queue offsets."""
        client_id, found = f"c-{group}-{lite}", list[tuple[int, str]]()
        option = LiteOffsetOption("POLICY", FIRST)
        change = LiteSubscriptionChange("PARTIAL_ADD", client_id, group, TOPIC, [lite], option)
        body = encode_body(LiteSubscriptionChanges([change]))
        await self._ask(request(RequestCode.LITE_SUBSCRIPTION_CTL, body=body))
        async with asyncio.timeout(PATIENCE):
            while len(found) < count:
                found += await self._pop(client_id, group)
        return found

    async def _pop(self, client_id: str, group: str) -> list[tuple[int, str]]:
        header = PopLiteHeader(
            client_id=client_id,
            consumer_group=group,
            topic=TOPIC,
            max_msg_num=32,
            invisible_time=60_000,
            poll_time=1000,
            born_time=SystemClock().milliseconds(),
        )
        asked = request(RequestCode.POP_LITE_MESSAGE, header)
        answer = await self._client.request(self._address, asked, PATIENCE)
        if answer.code in (ResponseCode.PULL_NOT_FOUND, ResponseCode.POLLING_TIMEOUT):
            return []
        assert answer.code == ResponseCode.SUCCESS, answer.remark
        found = list[tuple[int, str]]()
        for record, receipt in popped(answer):
            # Those that are not dispatched yet are popped once all before are acknowledged.
            await self._ask(request(RequestCode.ACK_MESSAGE, ack_header(group, record, receipt)))
            offset = int(record.properties["INNER_MULTI_QUEUE_OFFSET"])
            found.append((offset, record.body.decode()))
        return found


def messages(lite: str, count: int) -> list[tuple[int, str]]:
    return [(number, f"{lite}{number}") for number in range(count)]


async def goes_on(address: str, group: str, numbers: Sequence[int]) -> list[list[tuple[int, str]]]:
    """Send messages to a broker; return what a new group gets of each lite topic."""
    user = LiteUser(address)
    try:
        await user.create(group)
        await user.send(numbers)
        return [await user.consume(group, lite, numbers[-1] + 1) for lite in LITES]
    finally:
        await user.close()


@pytest.mark.parametrize(
    ("store_type", "is_killed"),
    [
        ("default", False),
        pytest.param("default", True, marks=pytest.mark.nightly),
        pytest.param("defaultRocksDB", False, marks=pytest.mark.nightly),
        ("defaultRocksDB", True),
    ],
)
def test_lite_topics_of_rocketmq_go_on(tmp_path: Path, store_type: str, *, is_killed: bool) -> None:
    """mqlake derives the light queues from the log, wherever RocketMQ keeps its own."""
    store = tmp_path / "store"
    theirs = {"enableMultiDispatch": "true", "storeType": store_type}
    try:
        cluster = Cluster(tmp_path, store, SETTINGS | theirs)
    except JavaMissingError as reason:
        pytest.skip(f"without the real RocketMQ: {reason}")
    cluster.start()
    try:
        found = asyncio.run(goes_on(cluster.broker, "theirs", range(3)))
        assert found == [messages(lite, 3) for lite in LITES]
    finally:
        (cluster.kill if is_killed else cluster.stop)()
    with broker(store, **SETTINGS) as running:
        found = asyncio.run(goes_on(running.address, "ours", range(3, 5)))
        assert found == [messages(lite, 5) for lite in LITES]
