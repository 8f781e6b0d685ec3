"""What producers may send, and what they are told."""

from __future__ import annotations

import asyncio
from typing import Any, Self

from mqlake.formats.message_batch import encode_batch
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.headers.recall import RecallHeader
from mqlake.store.append.message import Message, MessageBatch
from mqlake.store.append.put_result import PutStatus
from tests.broker.live.observing import change, observes, soon, until
from tests.broker.running import Running, to
from tests.broker.send.random_sends import BATCH_FIELDS, KEY, TOPIC, batch, send
from tests.broker.send.streams import ask, warm
from tests.protocol.messages import SEND_FIELDS

_RUN = 20


async def lengths(broker: Running, size: int) -> dict[str, bool]:
    """Say by which ways a body of a size is accepted."""
    store, body = broker.state.store, b"x" * size
    message = Message(TOPIC, body)
    half = to(TOPIC, properties=f"{KEY}TRAN_MSG\x01true\x02PGROUP\x01p\x02", sys_flag=4)
    run = b"".join(send(SEND_FIELDS | {"i": KEY}, body, number) for number in range(_RUN))
    # What a batch has beside the body of its message counts too.
    inner = encode_batch([(0, b"x" * (size - len(encode_batch([(0, b"", b"")]))), b"")])
    batches = b"".join(batch(BATCH_FIELDS, inner, number) for number in range(3))
    runs = await ask(broker, run, _RUN)
    batch_runs = await ask(broker, batches, 3)
    answers = {answer.code for answer in runs.values()}
    batch_answers = {answer.code for answer in batch_runs.values()}
    assert len(answers) == len(batch_answers) == 1
    batched_result = store.appends.batch(MessageBatch(topic=TOPIC, body=inner))
    return {
        "single sends": (await broker.send(to(TOPIC), body)).code == 0,
        "single sends with a key": (await broker.send(to(TOPIC, properties=KEY), body)).code == 0,
        "half messages": (await broker.send(half, body)).code == 0,
        "runs": answers == {0},
        "batches": (
            await broker.ask(RequestCode.SEND_BATCH_MESSAGE, to(TOPIC, batch=True), inner)
        ).code
        == 0,
        "runs of batches": batch_answers == {0},
        "put": store.core.puts.put(message).status is PutStatus.PUT_OK,
        "put_many": {put.status for put in store.appends.many([message] * 20)}
        == {PutStatus.PUT_OK},
        "put_batch": batched_result.status is PutStatus.PUT_OK,
    }


@observes("maxMessageSize", maxMessageSize=3000)
async def max_message_size(broker: Running) -> None:
    await warm(broker)
    assert set((await lengths(broker, 3000)).values()) == {True}
    assert set((await lengths(broker, 3001)).values()) == {False}
    for most in (2000, 5000):
        await change(broker, maxMessageSize=most)
        for _ in range(2):  # before kernels are loaded anew, and then
            found = await lengths(broker, most)
            assert set(found.values()) == {True}, found
            found = await lengths(broker, most + 1)
            assert set(found.values()) == {False}, found
            await warm(broker)


@observes("autoMessageVersionOnTopicLen")
async def auto_message_version(broker: Running) -> None:
    message = Message("x" * 130, b"")
    assert broker.state.store.core.puts.put(message).status is PutStatus.PUT_OK
    await change(broker, autoMessageVersionOnTopicLen="false")
    assert broker.state.store.core.puts.put(message).status is PutStatus.MESSAGE_ILLEGAL
    await change(broker, autoMessageVersionOnTopicLen="true")
    assert broker.state.store.core.puts.put(message).status is PutStatus.PUT_OK


@observes("osPageCacheBusyTimeOutMills", osPageCacheBusyTimeOutMills=3_600_000)
async def os_page_cache_busy(broker: Running) -> None:
    core: Any = broker.state.store.core
    appender = core._appender
    appender._since = core.clock.milliseconds() - 500_000
    assert core.puts.answer_if_busy(Message(TOPIC, b"")) is None
    await change(broker, osPageCacheBusyTimeOutMills=100)
    answer = core.puts.answer_if_busy(Message(TOPIC, b""))
    assert answer is not None
    assert answer.status is PutStatus.OS_PAGE_CACHE_BUSY


@observes("regionId")
async def region_id(broker: Running) -> None:
    await warm(broker)
    for region in ("DefaultRegion", "elsewhere"):
        assert (await broker.send(to("Orders"))).fields["MSG_REGION"] == region
        assert broker.records("Orders")[-1].properties["MSG_REGION"] == region
        run = [send(SEND_FIELDS | {"i": KEY, "e": "1"}, b"", number) for number in range(_RUN)]
        answers = await ask(broker, b"".join(run), _RUN)
        assert {answer.fields["MSG_REGION"] for answer in answers.values()} == {region}
        assert broker.records(TOPIC, 1)[-1].properties["MSG_REGION"] == region
        await change(broker, regionId="elsewhere")
        await warm(broker)


@observes("traceOn")
async def trace_on(broker: Running) -> None:
    assert (await broker.send(to("Orders"))).fields["TRACE_ON"] == "true"
    await change(broker, traceOn="false")
    assert (await broker.send(to("Orders"))).fields["TRACE_ON"] == "false"
    assert broker.records("Orders")[-1].properties["TRACE_ON"] == "false"


@observes("rejectTransactionMessage")
async def reject_transaction(broker: Running) -> None:
    half = to("Orders", properties=f"{KEY}TRAN_MSG\x01true\x02PGROUP\x01p\x02", sys_flag=4)
    assert (await broker.send(half)).code == ResponseCode.SUCCESS
    await change(broker, rejectTransactionMessage="true")
    assert (await broker.send(half)).code == ResponseCode.NO_PERMISSION


async def recall(broker: Running) -> int:
    """Ask to take a message back; what is asked for does not exist."""
    header = RecallHeader(topic="Orders", recall_handle="")
    return (await broker.ask(RequestCode.RECALL_MESSAGE, header)).code


@observes("recallMessageEnable")
async def recall_message_enable(broker: Running) -> None:
    assert await recall(broker) == ResponseCode.NO_PERMISSION
    await change(broker, recallMessageEnable="true")
    assert await recall(broker) == ResponseCode.ILLEGAL_OPERATION


@observes("allowRecallWhenBrokerNotWriteable", brokerPermission=4, recallMessageEnable=True)
async def allow_recall(broker: Running) -> None:
    assert await recall(broker) == ResponseCode.ILLEGAL_OPERATION
    await change(broker, allowRecallWhenBrokerNotWriteable="false")
    assert await recall(broker) == ResponseCode.SERVICE_NOT_AVAILABLE


@observes("startAcceptSendRequestTimeStamp")
async def start_accept(broker: Running) -> None:
    await warm(broker)
    reply = to("DefaultCluster_REPLY_TOPIC", properties="REPLY_TO_CLIENT\x01gone\x02")
    for is_early in (False, True, False):
        value = broker.state.store.core.clock.milliseconds() + 3_600_000 if is_early else 0
        if is_early or broker.runtime.settings.start_accept_send_request_time_stamp:
            await change(broker, startAcceptSendRequestTimeStamp=value)
        answer = await broker.send(to("Orders"))
        assert ("unable to service" in (answer.remark or "")) is is_early
        run = b"".join(send(SEND_FIELDS | {"i": KEY}, b"", number) for number in range(_RUN))
        answers = await ask(broker, run, _RUN)
        assert {answer.code != 0 for answer in answers.values()} == {is_early}
        answer = await broker.ask(RequestCode.SEND_REPLY_MESSAGE_V2, reply, b"")
        assert ("unable to service" in (answer.remark or "")) is is_early


class SlowDisk:
    """Syncs of a store's log that wait."""

    def __init__(self, broker: Running) -> None:
        self._core: Any = broker.state.store.core
        self._usual = self._core.log.unsynced
        self.is_free = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    def __enter__(self) -> Self:
        usual, loop, is_free = self._usual, self._loop, self.is_free

        class Waits:
            def run(self) -> None:
                asyncio.run_coroutine_threadsafe(is_free.wait(), loop).result()
                self.job = usual()
                self.job.run()

            def done(self) -> None:
                self.job.done()

        self._core.log.unsynced = Waits
        return self

    def __exit__(self, *failure: object) -> None:
        self._core.log.unsynced = self._usual
        self.is_free.set()


@observes("sendThreadPoolQueueCapacity", flushDiskType="SYNC_FLUSH")
async def send_queue_capacity(broker: Running) -> None:
    assert (await broker.send(to("Orders"))).code == ResponseCode.SUCCESS
    end = broker.state.store.core.log.end
    with SlowDisk(broker):
        await change(broker, sendThreadPoolQueueCapacity=1)
        waiting = asyncio.create_task(broker.send(to("Orders")))
        await until(lambda: broker.state.store.core.log.end > end)
        answer = asyncio.create_task(broker.send(to("Orders")))
        await soon(asyncio.wait([answer]))
        assert "WAITING_FOR_DISK" in (answer.result().remark or "")
    assert (await waiting).code == ResponseCode.SUCCESS


@observes("syncFlushTimeout", flushDiskType="SYNC_FLUSH", syncFlushTimeout=3_600_000)
async def sync_flush_timeout(broker: Running) -> None:
    assert (await broker.send(to("Orders"))).code == ResponseCode.SUCCESS
    end = broker.state.store.core.log.end
    with SlowDisk(broker):
        before = asyncio.create_task(broker.send(to("Orders")))
        await until(lambda: broker.state.store.core.log.end > end)
        await change(broker, syncFlushTimeout=50)
        after = asyncio.create_task(broker.send(to("Orders")))
        await soon(asyncio.wait([before, after]))
        assert before.result().code == ResponseCode.FLUSH_DISK_TIMEOUT
        assert after.result().code == ResponseCode.FLUSH_DISK_TIMEOUT
