"""Brokers reach clients over their Telemetry streams."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec

from mqlake.grpc.messages import (
    ClientType,
    Code,
    EndTransactionRequest,
    MessageType,
    Status,
    TelemetryCommand,
    ThreadStackTrace,
    TransactionResolution,
    TransactionSource,
    VerifyMessageResult,
)
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command
from mqlake.protocol.headers.admin import ConsumerHeader
from tests import simulated
from tests.proxy.clients.of_clients import OpenStream, consumer, known, producer
from tests.proxy.sending.messages import ID, message, send
from tests.proxy.serving import Calls, serving

EAGER = {"transactionTimeOut": 1000, "transactionCheckInterval": 1000}


async def half(calls: Calls, client_id: str, number: int) -> None:
    sent = message(
        "X", b"half", message_type=MessageType.TRANSACTION, message_id=f"{ID}{number}", tag="t"
    )
    found = await calls.ask("SendMessage", send(sent), client_id)
    assert found.status.code == Code.OK, found.status.message


def test_a_producer_is_asked_about_a_transaction_that_it_has_not_ended(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving(tmp_path, **EAGER) as calls:
            calls.topic("X", "TRANSACTION", queues=1)
            stream = await known(calls, "p1", producer("X"))
            for number in range(2):
                await half(calls, "p1", number)
            resolutions = {
                f"{ID}0": TransactionResolution.COMMIT,
                f"{ID}1": TransactionResolution.ROLLBACK,
            }
            for _ in range(2):
                asked = (await stream.next()).recover_orphaned_transaction_command
                system = asked.message.system_properties
                assert system.message_id == asked.transaction_id
                assert (asked.message.topic.name, asked.message.body) == ("X", b"half")
                assert (system.tag, system.message_type) == ("t", MessageType.TRANSACTION)
                request = EndTransactionRequest(
                    topic=asked.message.topic,
                    message_id=system.message_id,
                    transaction_id=asked.transaction_id,
                    resolution=resolutions[asked.transaction_id],
                    source=TransactionSource.SOURCE_SERVER_CHECK,
                )
                found = await calls.ask("EndTransaction", request, "p1")
                assert found.status.code == Code.OK, found.status.message
            (record,) = calls.broker.records("X")
            assert record.properties["UNIQ_KEY"] == f"{ID}0"

    simulated.run(run())


def test_another_producer_of_the_topic_is_asked_if_the_sender_is_gone(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving(tmp_path, **EAGER) as calls:
            calls.topic("X", "TRANSACTION", queues=1)
            await half(calls, "gone", 0)
            stream = await known(calls, "p2", producer("X"))
            asked = (await stream.next()).recover_orphaned_transaction_command
            assert asked.transaction_id == f"{ID}0"

    simulated.run(run())


def test_another_producer_is_asked_if_the_chosen_one_has_no_stream(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving(tmp_path, **EAGER) as calls:
            calls.topic("X", "TRANSACTION", queues=1)
            deaf = await known(calls, "deaf", producer("X"))
            await deaf.end()
            stream = await known(calls, "hears", producer("X"))
            for number in range(3):
                await half(calls, "deaf", number)
            asked = {
                (await stream.next()).recover_orphaned_transaction_command.transaction_id
                for _ in range(3)
            }
            assert asked == {f"{ID}{number}" for number in range(3)}

    simulated.run(run())


async def ask_consumer(calls: Calls, code: int, **fields: object) -> Command:
    header = ConsumerHeader("g", "c1", **fields)  # pyright: ignore[reportArgumentType]
    return await calls.broker.ask(code, header)


def test_a_consumer_consumes_a_message_directly(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving(tmp_path) as calls:
            calls.topic("T", queues=1)
            await calls.ask("SendMessage", send(message(body=b"verify me")))
            (record,) = calls.broker.records("T")
            settings = consumer("g", "T", client_type=ClientType.PUSH_CONSUMER)
            stream = await known(calls, "c1", settings)
            for code, result in (
                (Code.OK, "CR_SUCCESS"),
                (Code.FAILED_TO_CONSUME_MESSAGE, "CR_LATER"),
                (Code.MESSAGE_CORRUPTED, "CR_RETURN_NULL"),
                (Code.INTERNAL_ERROR, "CR_THROW_EXCEPTION"),
            ):
                direct = RequestCode.CONSUME_MESSAGE_DIRECTLY
                asking = asyncio.create_task(ask_consumer(calls, direct, msg_id=record.message_id))
                asked = (await stream.next()).verify_message_command
                assert asked.message.body == b"verify me"
                told = VerifyMessageResult(nonce=asked.nonce)
                status = Status(code=code, message="why")
                stream.send(TelemetryCommand(status=status, verify_message_result=told))
                answer = await asking
                assert answer.code == ResponseCode.SUCCESS, answer.remark
                body = msgspec.json.decode(bytes(answer.body))
                assert (body["consumeResult"], body["remark"]) == (result, "why")

    simulated.run(run())


def test_a_consumer_shows_its_threads(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving(tmp_path) as calls:
            stream = await known(calls, "c1", consumer("g", "T"))
            code = RequestCode.GET_CONSUMER_RUNNING_INFO
            answer = await ask_consumer(calls, code)
            body = msgspec.json.decode(bytes(answer.body))
            assert body["properties"]["consumerGroup"] == "g"
            assert [each["topic"] for each in body["subscriptionSet"]] == ["T"]
            asking = asyncio.create_task(ask_consumer(calls, code, jstack_enable=True))
            nonce = (await stream.next()).print_thread_stack_trace_command.nonce
            trace = ThreadStackTrace(nonce=nonce, thread_stack_trace="the stack")
            stream.send(TelemetryCommand(thread_stack_trace=trace))
            body = msgspec.json.decode(bytes((await asking).body))
            assert body["jstack"] == "the stack"

    simulated.run(run())


def test_a_consumer_that_does_not_answer_is_waited_for_9_seconds(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving(tmp_path) as calls:
            await known(calls, "c1", consumer("g", "T"))
            code = RequestCode.GET_CONSUMER_RUNNING_INFO
            answer = await ask_consumer(calls, code, jstack_enable=True)
            assert answer.code == ResponseCode.CONSUME_MSG_TIMEOUT

    simulated.run(run())


def test_a_consumer_without_a_stream_cannot_be_asked(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving(tmp_path) as calls:
            stream: OpenStream = await known(calls, "c1", consumer("g", "T"))
            await stream.end()
            answer = await ask_consumer(calls, RequestCode.GET_CONSUMER_RUNNING_INFO)
            assert answer.code == ResponseCode.SYSTEM_ERROR
            assert "no Telemetry stream" in (answer.remark or "")

    simulated.run(run())
