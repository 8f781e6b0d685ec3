"""What was accepted is delivered, whatever `maxMessageSize` is meanwhile."""

from __future__ import annotations

import asyncio
from pathlib import Path

from mqlake.formats.sys_flag import TRANSACTION_COMMIT
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.headers.transactions import EndTransactionHeader
from tests.broker.live.observing import change, until
from tests.broker.pop.popping import RETRY, TOPIC, pop
from tests.broker.putting_again import FAST, HALF, KEY, give_back
from tests.broker.running import Running, running, to
from tests.broker.transactions.half_messages import changed, prepare

LONG = b"x" * 5000


async def send(broker: Running, topic: str, extra: str = "") -> None:
    answer = await broker.send(to(topic, properties=KEY + extra), LONG)
    assert answer.code == ResponseCode.SUCCESS, answer.remark


def arrived(broker: Running, topic: str) -> bool:
    return [record.body for record in broker.records(topic)] == [LONG]


async def half(broker: Running) -> EndTransactionHeader:
    header = await prepare(broker, KEY + HALF)
    return changed(header, commit_or_rollback=TRANSACTION_COMMIT)


def test_what_was_accepted_is_delivered(tmp_path: Path) -> None:
    async def check() -> None:
        async with running(tmp_path, **FAST) as broker:
            await send(broker, TOPIC)
            await send(broker, "Timed", "TIMER_DELAY_MS\x01700\x02")
            await send(broker, "Delayed", "DELAY\x011\x02")
            await send(broker, "Given")
            commit = await half(broker)
            (given,) = broker.records("Given")
            assert len(await pop(broker, invisible_time=500)) == 1
            await change(broker, maxMessageSize=3)
            answer = await broker.send(to("Timed"), b"long")
            assert answer.code == ResponseCode.MESSAGE_ILLEGAL
            answer = await give_back(broker, given)
            assert answer.code == ResponseCode.SUCCESS, answer.remark
            answer = await broker.ask(RequestCode.END_TRANSACTION, commit)
            assert answer.code == ResponseCode.SUCCESS, answer.remark
            for topic in (RETRY, "Timed", "Delayed", "%RETRY%group"):
                await until(lambda topic=topic: arrived(broker, topic))
            assert [record.body for record in broker.records("Orders", 1)] == [b"half"]

    asyncio.run(check())
