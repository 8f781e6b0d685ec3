"""Timer messages and transactions."""

from __future__ import annotations

from typing import Any

from mqlake.formats.topic_names import DISCARDED_TOPIC
from mqlake.protocol.codes import ResponseCode
from tests.broker.live.observing import DAY, change, observes, until
from tests.broker.running import Running, to
from tests.broker.transactions.half_messages import prepare

KEY = "UNIQ_KEY\x01AB12\x02"


@observes("timerRollWindowSlot", timerPrecisionMs=1000)
async def roll_window(broker: Running) -> None:
    header = to("Orders", properties=f"{KEY}TIMER_DELAY_SEC\x01100\x02")
    core = broker.state.store.core
    assert (await broker.send(header)).code == ResponseCode.SUCCESS
    await until(lambda: core.timers.next_due() is not None)
    due = core.timers.next_due()
    await change(broker, timerRollWindowSlot=10)
    assert (await broker.send(header)).code == ResponseCode.SUCCESS
    await until(lambda: (core.timers.next_due() or 0) < (due or 0) - 50_000)


@observes("timerMaxDelaySec")
async def longest_delay(broker: Running) -> None:
    header = to("Orders", properties=f"{KEY}TIMER_DELAY_SEC\x01100\x02")
    assert (await broker.send(header)).code == ResponseCode.SUCCESS
    await change(broker, timerMaxDelaySec=50)
    answer = await broker.send(header)
    assert "timerMaxDelaySec" in (answer.remark or "")


@observes(
    "timerFlushIntervalMs",
    timerFlushIntervalMs=DAY,
    timerPrecisionMs=100,
    flushCommitLogLeastPages=0,
)
async def timer_flush_interval(broker: Running) -> None:
    path = broker.runtime.settings.store_path / "config" / "timercheck"
    await broker.send(to("Orders", properties=f"{KEY}TIMER_DELAY_MS\x01200\x02"))
    assert not path.exists()
    await change(broker, timerFlushIntervalMs=10)
    await until(path.exists)


def asked(broker: Running) -> list[Any]:
    """Return the list of the halves whose producers are asked from now on."""
    found: list[Any] = []
    broker.state.store.core.transactions.ask_with(found.append)
    return found


@observes("transactionTimeOut", transactionTimeOut=DAY, transactionCheckInterval=10)
async def transaction_time_out(broker: Running) -> None:
    questions = asked(broker)
    await prepare(broker)
    assert questions == []
    await change(broker, transactionTimeOut=0)
    await until(lambda: bool(questions))


@observes("transactionCheckInterval", transactionTimeOut=0, transactionCheckInterval=DAY)
async def transaction_check_interval(broker: Running) -> None:
    questions = asked(broker)
    await prepare(broker)
    assert questions == []
    await change(broker, transactionCheckInterval=10)
    await until(lambda: bool(questions))


@observes(
    "transactionCheckMax",
    transactionTimeOut=0,
    transactionCheckInterval=10,
    transactionCheckMax=2_000_000_000,
)
async def transaction_check_max(broker: Running) -> None:
    questions = asked(broker)
    await prepare(broker)
    await until(lambda: len(questions) > 1)
    assert broker.records(DISCARDED_TOPIC) == []
    await change(broker, transactionCheckMax=1)
    await until(lambda: bool(broker.records(DISCARDED_TOPIC)))
