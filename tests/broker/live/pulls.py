"""What consumers that pull get, and how they wait."""

from __future__ import annotations

import asyncio

from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.store.append.message import Message
from tests.broker.live.observing import change, observes, soon
from tests.broker.pull.pulls import fill, polls, pull, pull_header, start_pull
from tests.broker.query.queries import bodies, query
from tests.broker.running import Running
from tests.until import until


@observes("longPollingEnable", shortPollingTimeMills=50)
async def long_polling(broker: Running) -> None:
    await fill(broker, 1)
    await change(broker, longPollingEnable="false")
    waiting = start_pull(broker, 1, 3_600_000)
    await soon(asyncio.wait([waiting]))
    assert waiting.result().code == ResponseCode.PULL_NOT_FOUND


@observes("shortPollingTimeMills", longPollingEnable=False, shortPollingTimeMills=3_600_000)
async def short_polling(broker: Running) -> None:
    await fill(broker, 1)
    await change(broker, shortPollingTimeMills=50)
    waiting = start_pull(broker, 1, 3_600_000)
    await soon(asyncio.wait([waiting]))
    assert waiting.result().code == ResponseCode.PULL_NOT_FOUND


@observes("correctOffsetPastEnd")
async def offset_past_end(broker: Running) -> None:
    await fill(broker, 3)
    assert (await pull(broker, 9)).offsets.next_begin_offset == 0
    await change(broker, correctOffsetPastEnd="false")
    assert (await pull(broker, 9)).offsets.next_begin_offset == 3


@observes("enablePropertyFilter")
async def property_filter(broker: Running) -> None:
    await fill(broker, 1)
    by = {"subscription": "a IS NULL", "expression_type": "SQL92"}
    assert (await pull(broker, **by)).code == ResponseCode.SUCCESS
    await change(broker, enablePropertyFilter="false")
    assert (await pull(broker, **by)).code == ResponseCode.SYSTEM_ERROR


@observes("maxFilterExpressionSize")
async def filter_expression_size(broker: Running) -> None:
    await fill(broker, 1)
    by = {"subscription": f"a IS NULL OR b = '{'x' * 64}'", "expression_type": "SQL92"}
    assert (await pull(broker, **by)).code == ResponseCode.SUCCESS
    await change(broker, maxFilterExpressionSize=64)
    assert (await pull(broker, **by)).code == ResponseCode.SUBSCRIPTION_PARSE_FAILED


@observes("litePullMessageEnable")
async def lite_pull(broker: Running) -> None:
    await fill(broker, 1)
    code = RequestCode.LITE_PULL_MESSAGE
    assert (await broker.ask(code, pull_header())).code == ResponseCode.SUCCESS
    await change(broker, litePullMessageEnable="false")
    assert (await broker.ask(code, pull_header())).code == ResponseCode.NO_PERMISSION


@observes("useServerSideResetOffset")
async def server_side_reset(broker: Running) -> None:
    await fill(broker, 3)
    offsets = broker.state.store.core.config.consumer_offsets
    offsets.reset("readers", "Orders", 0, 2)
    await change(broker, useServerSideResetOffset="false")
    assert (await pull(broker, 0)).bodies == [b"0", b"1", b"2"]
    await change(broker, useServerSideResetOffset="true")
    assert (await pull(broker, 0)).offsets.next_begin_offset == 2


@observes("maxTransferCountOnMessageInMemory")
async def transfer_count(broker: Running) -> None:
    await fill(broker, 9)
    assert len((await pull(broker)).bodies) == 9
    await change(broker, maxTransferCountOnMessageInMemory=3)
    assert len((await pull(broker)).bodies) == 3


@observes("maxTransferBytesOnMessageInMemory")
async def transfer_bytes(broker: Running) -> None:
    await fill(broker, 9)
    assert len((await pull(broker)).bodies) == 9
    assert len(broker.state.store.get("Orders", 0, 0, 9).records) == 9
    await change(broker, maxTransferBytesOnMessageInMemory=1)
    assert len((await pull(broker)).bodies) == 1
    assert len(broker.state.store.get("Orders", 0, 0, 9).records) == 1


@observes("maxFilterMessageSize")
async def filter_message_size(broker: Running) -> None:
    await fill(broker, 40)
    by = {"subscription": "none", "max_msg_nums": 1}
    assert (await pull(broker, **by)).offsets.next_begin_offset == 40
    assert broker.state.store.get("Orders", 0, 0, 1, tags="none").next_offset == 40
    await change(broker, maxFilterMessageSize=100)
    assert (await pull(broker, **by)).offsets.next_begin_offset == 5
    assert broker.state.store.get("Orders", 0, 0, 1, tags="none").next_offset == 5


@observes("maxMsgsNumBatch")
async def messages_of_a_query(broker: Running) -> None:
    for number in range(9):
        await broker.state.store.put(Message("Orders", b"%d" % number, keys="k"))
    assert len(bodies(await query(broker, "k"))) == 9
    await change(broker, maxMsgsNumBatch=3)
    assert len(bodies(await query(broker, "k"))) == 3


@observes("maxQueryEntries")
async def entries_of_a_query(broker: Running) -> None:
    for number in range(1200):
        await broker.state.store.put(Message("Orders", b"%d" % number, keys="k"))
    never = {"begin_timestamp": 1, "end_timestamp": 2}
    assert "maxQueryEntries" not in ((await query(broker, "k", **never)).remark or "")
    await change(broker, maxQueryEntries=1000)
    assert "maxQueryEntries" in ((await query(broker, "k", **never)).remark or "")


@observes("maxQueryScanSize", messageIndexEnable=False)
async def log_of_a_query(broker: Running) -> None:
    for number in range(40):
        await broker.state.store.put(Message("Orders", bytes(64 << 10), keys=f"k{number}"))
    assert (await query(broker, "k0")).code == ResponseCode.SUCCESS
    await change(broker, maxQueryScanSize=1 << 20)
    assert "maxQueryScanSize" in ((await query(broker, "k0")).remark or "")
    assert (await query(broker, "k39")).code == ResponseCode.SUCCESS


@observes("pullPollingSize")
async def pull_polling_size(broker: Running) -> None:
    await fill(broker, 1)
    waiting = [start_pull(broker, 1, 60_000) for _ in range(2)]
    await until(lambda: len(polls(broker)) == 2)
    await change(broker, pullPollingSize=2)
    last = start_pull(broker, 1, 60_000)
    await soon(asyncio.wait([last]))
    assert "pullPollingSize" in last.result().remark
    await fill(broker, 1, 1)
    await asyncio.gather(*waiting)


@observes("maxPullPollingSize")
async def max_pull_polling_size(broker: Running) -> None:
    await fill(broker, 1)
    waiting = [start_pull(broker, 1, 60_000) for _ in range(2)]
    await until(lambda: len(polls(broker)) == 2)
    await change(broker, maxPullPollingSize=2)
    other = Running(broker.broker)
    waiting.append(start_pull(other, 1, 60_000))
    await soon(asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED))
    (refused,) = [task.result().remark for task in waiting if task.done()]
    assert "maxPullPollingSize" in refused
    await fill(broker, 1, 1)
    await asyncio.gather(*waiting)
    await other.client.close()


@observes("slaveReadEnable", accessMessageInMemoryMaxRatio=0)
async def slave_reads(broker: Running) -> None:
    await fill(broker, 3)
    assert (await pull(broker)).offsets.suggest_which_broker_id == 0
    await change(broker, slaveReadEnable="true")
    assert (await pull(broker)).offsets.suggest_which_broker_id == 1


@observes("accessMessageInMemoryMaxRatio", slaveReadEnable=True)
async def memory_ratio(broker: Running) -> None:
    await fill(broker, 3)
    assert (await pull(broker)).offsets.suggest_which_broker_id == 0
    await change(broker, accessMessageInMemoryMaxRatio=0)
    assert (await pull(broker)).offsets.suggest_which_broker_id == 1
