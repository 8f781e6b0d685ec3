"""Sends: what is stored, and what the producer is told."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from mqlake.formats.message_batch import encode_batch
from mqlake.formats.message_id import decode_message_id
from mqlake.formats.record import Record
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, Serialization, request
from mqlake.protocol.headers.send import (
    SendMessageHeader,
    SendMessageHeaderV2,
    SendMessageResponseHeader,
)
from mqlake.remoting.client import RemotingClient
from mqlake.remoting.server import RemotingServer
from mqlake.store.delivery.transaction_messages import HALF_TOPIC
from tests import simulated
from tests.broker.running import PATIENCE, Running, running, to
from tests.store.record_crcs import without_crc

SYNC = "SYNC_FLUSH"
PROPERTIES = "KEYS\x01order-1\x02UNIQ_KEY\x01ABC\x02TAGS\x01new\x02"


def v1(header: SendMessageHeaderV2) -> SendMessageHeader:
    return SendMessageHeader(**msgspec.structs.asdict(header))


def found(answer: Command) -> SendMessageResponseHeader:
    assert answer.code == ResponseCode.SUCCESS, answer.remark
    return answer.header(SendMessageResponseHeader)


def stored_part(record: Record) -> tuple[object, ...]:
    return record.topic, record.queue_id, record.body, record.flag, without_crc(record.properties)


def test_a_send_is_stored_and_answered(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            header = to("Orders", queue_id=2, flag=7, sys_flag=1, properties=PROPERTIES)
            header.reconsume_times = 3
            answer = await broker.send(header, b"body")
            (record,) = broker.records("Orders", 2)

            told = found(answer)
            assert told.queue_id == 2
            assert told.queue_offset == record.queue_offset == 0
            assert decode_message_id(told.msg_id) == (broker.address, record.physical_offset)
            assert told.transaction_id == "ABC"
            assert answer.fields["MSG_REGION"] == "DefaultRegion"
            assert answer.fields["TRACE_ON"] == "true"
            assert record.body == b"body"
            assert (record.flag, record.sys_flag, record.reconsume_times) == (7, 1, 3)
            assert record.born_timestamp == header.born_timestamp
            peer = await broker.client.connect(broker.address)
            assert record.born_host == f"127.0.0.1:{peer.local_port}"
            assert without_crc(record.properties) == {
                "KEYS": "order-1",
                "UNIQ_KEY": "ABC",
                "TAGS": "new",
                "CLUSTER": "DefaultCluster",
                "MSG_REGION": "DefaultRegion",
                "TRACE_ON": "true",
            }

    simulated.run(run())


@pytest.mark.parametrize("serialization", Serialization)
def test_all_ways_to_send_store_the_same(tmp_path: Path, serialization: Serialization) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            header = to("Orders", properties=PROPERTIES)
            for code, fields in (
                (RequestCode.SEND_MESSAGE, v1(header)),
                (RequestCode.SEND_MESSAGE_V2, header),
            ):
                command = request(code, fields, b"same")
                command.serialization = serialization
                found(await broker.client.request(broker.address, command, PATIENCE))
            first, second = broker.records("Orders")
            assert stored_part(first) == stored_part(second)

    simulated.run(run())


@pytest.mark.parametrize("flush", ["ASYNC_FLUSH", "SYNC_FLUSH"])
def test_every_producer_gets_its_own_answer(tmp_path: Path, flush: str) -> None:
    async def send(broker: Running, number: int) -> None:
        client = RemotingClient(connect_timeout=PATIENCE)
        bodies = [b"%d-%d" % (number, at) for at in range(20)]
        headers = [to("Orders", queue_id=number % 4) for _ in bodies]
        commands = map(request, [RequestCode.SEND_MESSAGE_V2] * 20, headers, bodies)
        answers = await asyncio.gather(
            *(client.request(broker.address, command, PATIENCE) for command in commands)
        )
        for body, answer in zip(bodies, answers, strict=True):
            _, offset = decode_message_id(found(answer).msg_id)
            record = broker.state.store.record_at(offset)
            assert record is not None
            assert record.body == body
            assert record.queue_offset == found(answer).queue_offset
        await client.close()

    async def run() -> None:
        async with running(tmp_path, flushDiskType=flush) as broker:
            await asyncio.gather(*(send(broker, number) for number in range(8)))
            assert sum(len(broker.records("Orders", queue)) for queue in range(4)) == 160

    simulated.run(run())


def test_the_messages_of_a_producer_stay_in_order(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            batch = encode_batch([(0, b"3", b""), (0, b"4", b"")])
            sends = [
                broker.send(to("Orders"), b"1"),
                broker.send(to("Orders"), b"2"),
                broker.ask(RequestCode.SEND_BATCH_MESSAGE, to("Orders", batch=True), batch),
                broker.send(to("Orders"), b"5"),
            ]
            answers = await asyncio.gather(*sends)
            assert [found(answer).queue_offset for answer in answers] == [0, 1, 2, 4]
            bodies = [record.body for record in broker.records("Orders")]
            assert bodies == [b"1", b"2", b"3", b"4", b"5"]

    simulated.run(run())


def test_a_batch_is_answered_with_all_its_ids(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            body = encode_batch([(1, b"a", b"KEYS\x01x\x02"), (2, b"b", b"")])
            header = to("Orders", batch=True, queue_id=-1)
            told = found(await broker.ask(RequestCode.SEND_BATCH_MESSAGE, header, body))
            records = broker.records("Orders", told.queue_id)
            assert [record.body for record in records] == [b"a", b"b"]
            assert told.msg_id.split(",") == [record.message_id for record in records]

    simulated.run(run())


def test_oneway_sends_are_stored_and_not_answered(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            command = request(RequestCode.SEND_MESSAGE_V2, to("Orders"), b"oneway")
            await broker.client.oneway(broker.address, command)
            command = request(RequestCode.SEND_MESSAGE_V2, to("../x"), b"refused")
            await broker.client.oneway(broker.address, command)
            told = found(await broker.send(to("Orders")))
            assert told.queue_offset == 1

    simulated.run(run())


def test_any_queue_is_a_queue_of_the_topic(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            answers = [await broker.send(to("Orders", queue_id=-1)) for _ in range(20)]
            assert {found(answer).queue_id for answer in answers} <= set(range(4))

    simulated.run(run())


def test_half_messages_wait_for_their_end(tmp_path: Path) -> None:
    properties = PROPERTIES + "TRAN_MSG\x01true\x02PGROUP\x01producers\x02"

    async def run() -> None:
        async with running(tmp_path) as broker:
            await broker.send(to("Orders"))
            told = found(await broker.send(to("Orders", queue_id=1, properties=properties)))
            assert told.queue_id == 1
            assert told.transaction_id == "ABC"
            assert broker.records("Orders", 1) == []
            (half,) = broker.records(HALF_TOPIC)
            assert half.properties["REAL_TOPIC"] == "Orders"
            assert half.properties["REAL_QID"] == "1"

    simulated.run(run())


def test_half_messages_can_be_forbidden(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path, rejectTransactionMessage=True) as broker:
            answer = await broker.send(to("Orders", properties="TRAN_MSG\x01true\x02"))
            assert answer.code == ResponseCode.NO_PERMISSION
            assert "transaction" in (answer.remark or "")

    simulated.run(run())


@pytest.mark.parametrize(("flush", "fails"), [("ASYNC_FLUSH", "many"), (SYNC, "confirm")])
def test_sends_are_answered_if_the_store_raises(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flush: str, fails: str
) -> None:
    async def run() -> None:
        async with running(tmp_path, flushDiskType=flush) as broker:
            found(await broker.send(to("Orders"), b"1"))
            with monkeypatch.context() as patched:

                def fail(*_: object) -> None:
                    raise RuntimeError("unexpected")

                patched.setattr(broker.state.store.appends, fails, fail)
                answer = await broker.send(to("Orders"), b"2")
            assert answer.code == ResponseCode.SYSTEM_ERROR
            assert answer.remark == "RuntimeError: unexpected"
            found(await broker.send(to("Orders"), b"3"))

    simulated.run(run())


def test_what_was_put_is_answered_before_a_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The disk may be slower than the second that a stop waits for handlers.
    monkeypatch.setattr(RemotingServer.stop, "__defaults__", (PATIENCE,))

    async def run() -> None:
        client = RemotingClient(connect_timeout=PATIENCE)
        async with running(tmp_path, flushDiskType="SYNC_FLUSH") as broker:
            address = broker.address
            await client.connect(address)
            command = request(RequestCode.SEND_MESSAGE_V2, to("Orders"), b"last")
            sending = asyncio.create_task(client.request(address, command, PATIENCE))
            while not broker.state.store.core.log.end:  # noqa: ASYNC110 (nothing tells)
                await asyncio.sleep(0)
        assert found(await sending).queue_offset == 0
        await client.close()

    asyncio.run(run())


@pytest.mark.parametrize("flush", ["ASYNC_FLUSH", "SYNC_FLUSH"])
def test_what_is_answered_no_longer_counts_as_waiting(tmp_path: Path, flush: str) -> None:
    half = to("Orders", properties=PROPERTIES + "TRAN_MSG\x01true\x02PGROUP\x01producers\x02")

    async def run() -> None:
        async with running(tmp_path, flushDiskType=flush) as broker:
            body = encode_batch([(0, b"a", b"")])
            for _ in range(3):
                await broker.send(to("Orders"))
                await broker.send(half)
                await broker.ask(RequestCode.SEND_BATCH_MESSAGE, to("Orders", batch=True), body)
            (peer,) = broker.broker.peers
            assert peer.in_flight == 0

    simulated.run(run())


def test_settings_that_change_meanwhile_count(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            changes = b"regionId=elsewhere\ntraceOn=false\n"
            assert (await broker.ask(RequestCode.UPDATE_BROKER_CONFIG, body=changes)).code == 0
            answer = await broker.send(to("Orders"))
            (record,) = broker.records("Orders")
            for told in (answer.fields, record.properties):
                assert (told["MSG_REGION"], told["TRACE_ON"]) == ("elsewhere", "false")

    simulated.run(run())
