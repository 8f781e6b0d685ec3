"""What changes counts for the next send, also in the lane."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mqlake.broker.lane.choice import is_chosen
from mqlake.errors import MqlakeError
from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.command import Command
from tests.broker.lane.lanes import served, with_lane
from tests.broker.lane.raw_client import FIELDS, KINDS, RawClient, usual
from tests.broker.lane.test_connections import bodies, joined, seats
from tests.broker.running import Running, running, to
from tests.broker.send.random_sends import KEY, TOPIC, batch
from tests.broker.send.test_inner_batches import body, make

pytestmark = pytest.mark.skipif(not is_chosen(), reason="there is no lane")


async def one(client: RawClient, number: int = 1, kind: int = 0, **fields: str) -> Command:
    return (await client.ask(usual(number, kind, **fields)))[0]


@pytest.mark.parametrize("kind", KINDS)
def test_settings_and_topics(tmp_path: Path, kind: int) -> None:
    async def run() -> None:
        async with with_lane(tmp_path) as (broker, calls):
            state, live = broker.state, broker.runtime.live
            client = await joined(broker)
            assert (await one(client, kind=kind)).code == ResponseCode.SUCCESS
            before = served(calls)
            live.replace(msgspec.structs.replace(live.now, region_id="Elsewhere"))
            assert (await one(client, kind=kind)).fields["MSG_REGION"] == "Elsewhere"
            assert broker.records(TOPIC)[-1].properties["MSG_REGION"] == "Elsewhere"
            assert served(calls) == before + 1
            topic = state.topics.get(TOPIC)
            assert topic is not None
            state.topics.put(msgspec.structs.replace(topic, write_queue_nums=2, read_queue_nums=2))
            refused = await one(client, kind=kind, e="3")
            assert refused.code == ResponseCode.INVALID_PARAMETER
            state.topics.put(msgspec.structs.replace(topic, order=True))
            assert (await one(client, kind=kind)).code == ResponseCode.SUCCESS
            live.replace(msgspec.structs.replace(live.now, broker_permission=4))
            assert (await one(client, kind=kind)).code == ResponseCode.NO_PERMISSION
            live.replace(msgspec.structs.replace(live.now, broker_permission=6))
            live.replace(msgspec.structs.replace(live.now, max_message_size=1))
            refused = await one(client, number=10, kind=kind)
            assert refused.code == ResponseCode.MESSAGE_ILLEGAL
            assert (await one(client, kind=kind)).code == ResponseCode.SUCCESS
            assert served(calls) >= before + 1

    asyncio.run(run())


def test_a_store_that_accepts_no_messages(tmp_path: Path) -> None:
    async def run() -> None:
        async with with_lane(tmp_path) as (broker, _):
            client = await joined(broker)
            appender: Any = broker.state.store.core._appender  # type: ignore[attr-defined]
            appender.set_not_writable("full")
            assert (await one(client)).code == ResponseCode.SERVICE_NOT_AVAILABLE
            assert seats(broker) == 0
            appender.set_not_writable(None)
            assert (await one(client)).code == ResponseCode.SUCCESS

    asyncio.run(run())


def test_limits_of_addresses(tmp_path: Path) -> None:
    async def run() -> None:
        async with with_lane(tmp_path) as (broker, _):
            client = await joined(broker)
            live = broker.runtime.live
            live.replace(msgspec.structs.replace(live.now, max_request_rate_per_address=1))
            assert seats(broker) == 0
            codes = {(await one(client)).code for _ in range(5)}
            assert ResponseCode.SERVICE_NOT_AVAILABLE in codes
            assert seats(broker) == 0

    asyncio.run(run())


def test_what_others_put_in_between(tmp_path: Path) -> None:
    async def run() -> None:
        async with with_lane(tmp_path) as (broker, calls):
            client = await joined(broker)
            offsets: list[int] = []
            for number in range(1, 20):
                answer = await one(client, number)
                offsets.append(int(answer.fields["queueOffset"]))
                other = await broker.send(to(TOPIC, properties="KEYS\1k\2", queue_id=0))
                offsets.append(int(other.fields["queueOffset"]))
            assert offsets == list(range(2, 2 + len(offsets)))
            assert served(calls) >= 19

    asyncio.run(run())


def test_the_next_file_of_the_log(tmp_path: Path) -> None:
    async def run() -> None:
        async with with_lane(tmp_path, mappedFileSizeCommitLog=20_000) as (broker, calls):
            client = await joined(broker)
            for begin in range(1, 401, 40):
                numbers = range(begin, begin + 40)
                found = await client.ask(*(usual(number) for number in numbers))
                assert [answer.opaque for answer in found] == list(numbers)
            assert bodies(broker) == [b"%d" % number for number in range(401)]
            assert broker.state.store.core.log.end > 3 * 20_000  # type: ignore[attr-defined]
            assert served(calls) > 40

    asyncio.run(run())


def test_what_was_put_is_there_after_a_restart(tmp_path: Path) -> None:
    async def run() -> None:
        async with with_lane(tmp_path) as (broker, calls):
            client = await joined(broker)
            await client.ask(*(usual(number) for number in range(1, 100)))
            assert served(calls) >= 99
        async with running(tmp_path) as again:
            assert bodies(again) == [b"%d" % number for number in range(100)]

    asyncio.run(run())


def test_a_broker_without_a_lane(tmp_path: Path) -> None:
    """The time of each send must be known exactly."""

    async def run() -> None:
        async with running(tmp_path, slowRequestMillis=1) as broker:
            await broker.send(to(TOPIC, properties=KEY))
            assert direct(broker) is None
            client = await RawClient.connect(broker)
            for number in range(3):
                await one(client, number)
            assert not any(peer.inlet.is_read_directly for peer in broker.broker.peers)
            await RawClient.close_all()

    asyncio.run(run())


def direct(broker: Running) -> Any:
    server: Any = broker.broker
    return server._server._shared.direct


def test_it_can_be_switched_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MQLAKE_LANE", "off")

    async def run() -> None:
        async with running(tmp_path) as broker:
            assert direct(broker) is None

    asyncio.run(run())


def test_another_value_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MQLAKE_LANE", "fast")
    with pytest.raises(MqlakeError, match='"on" or "off"'):
        is_chosen()


def test_what_was_acknowledged_is_in_the_log(tmp_path: Path) -> None:
    """A copy of the files at that moment has it, as what a process that is killed leaves."""
    copy = tmp_path / "copy"

    async def run() -> None:
        async with with_lane(tmp_path / "store") as (broker, calls):
            client = await joined(broker)
            await client.ask(*(usual(number) for number in range(1, 100)))
            assert served(calls) >= 99
            shutil.copytree(tmp_path / "store", copy)
        async with running(copy) as again:
            assert bodies(again) == [b"%d" % number for number in range(100)]

    asyncio.run(run())


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_to_a_topic_of_batch_queues_is_one_record(tmp_path: Path, kind: int) -> None:
    async def run() -> None:
        async with with_lane(tmp_path) as (broker, calls):
            await make(broker)
            client = await joined(broker)
            assert (await one(client, kind=kind, b="Orders")).code == ResponseCode.SUCCESS
            assert (await one(client, kind=kind)).code == ResponseCode.SUCCESS
            before, fields = served(calls), FIELDS | {"m": "true"}
            (whole,) = await client.ask(batch(fields | {"b": "Orders"}, body(0, 3), 5, kind))
            assert whole.fields["batchUniqId"] == whole.fields["transactionId"]
            assert served(calls) == before
            (single,) = await client.ask(batch(fields, body(0, 3), 5, kind))
            assert len(single.fields["msgId"].split(",")) == 3
            assert served(calls) == before + 1
            assert [each.body for each in broker.records(TOPIC)[-3:]] == [b"0", b"1", b"2"]

    asyncio.run(run())
