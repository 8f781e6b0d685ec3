"""Metrics of transactions, of messages that wait for their time, of syncs and of ticks."""

from __future__ import annotations

from pathlib import Path

from mqlake.formats.sys_flag import TRANSACTION_ROLLBACK
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.store.append.message import Message
from mqlake.testing.advanced_clock import AdvancedClock
from tests import simulated
from tests.broker.metrics.scraping import of, scrape
from tests.broker.running import Running, running, to
from tests.broker.transactions.half_messages import changed, prepare
from tests.until import until

ORDERS = {"topic": "Orders"}
LOCAL = {"storage_type": "local", "storage_medium": "disk"}
SECOND = 1000


def test_transactions_are_counted_by_how_they_end(tmp_path: Path) -> None:
    async def check() -> None:
        async with running(tmp_path) as broker:
            halves = [await prepare(broker) for _ in range(4)]
            wanted = [*halves[:2], changed(halves[2], commit_or_rollback=TRANSACTION_ROLLBACK)]
            for half in (*wanted, wanted[0]):  # One is ended twice.
                assert (await broker.ask(RequestCode.END_TRANSACTION, half)).code == 0
            broker.state.store.core.tick()
            broker.state.store.core.transactions.check()
            found = await scrape(broker)
            assert found[of("rocketmq_commit_messages_total", **ORDERS)] == 2
            assert found[of("rocketmq_rollback_messages_total", **ORDERS)] == 1
            name = "rocketmq_finish_message_latency_milliseconds"
            assert found[of(f"{name}_count", **ORDERS)] == 2
            assert found[of("mqlake_half_messages")] == 1

    simulated.run(check())


async def delayed(broker: Running, seconds: int) -> None:
    key = f"UNIQ_KEY\x01{seconds}\x02"
    header = to("Orders", properties=f"{key}TIMER_DELAY_SEC\x01{seconds}\x02")
    assert (await broker.send(header)).code == ResponseCode.SUCCESS


def test_messages_with_a_delivery_time_are_counted_until_they_are_delivered(tmp_path: Path) -> None:
    async def check() -> None:
        clock = AdvancedClock()
        async with running(tmp_path, clock=clock, timerPrecisionMs=SECOND) as broker:
            timers = broker.state.store.timers
            for seconds in (3, 30, 40, 7200):
                await delayed(broker, seconds)
            await until(lambda: timers.waiting == 4)
            found = await scrape(broker)
            of_orders = {**LOCAL, **ORDERS}
            assert found[of("rocketmq_timing_messages", **of_orders)] == 4
            assert found[of("rocketmq_timer_enqueue_total", **of_orders)] == 4
            assert of("rocketmq_timer_dequeue_total", **of_orders) not in found
            name = "rocketmq_delay_message_latency_seconds"
            assert found[of(f"{name}_count", **of_orders)] == 4
            assert found[of("rocketmq_timer_enqueue_lag", **LOCAL)] == 0
            assert found[of("rocketmq_timer_dequeue_lag", **LOCAL)] == 0
            waiting = {
                bound: found[of("rocketmq_timer_message_snapshot", **LOCAL, timer_bound_s=bound)]
                for bound in ("5", "60", "300", "14400", "86400")
            }
            assert waiting == {"5": 1, "60": 2, "300": 0, "14400": 1, "86400": 0}
            clock.advance(100)
            assert timers.overdue() == 3
            await until(lambda: timers.waiting == 1)
            found = await scrape(broker)
            assert found[of("rocketmq_timing_messages", **of_orders)] == 1
            assert found[of("rocketmq_timer_dequeue_total", **of_orders)] == 3
            assert found[of("rocketmq_timer_dequeue_lag", **LOCAL)] == 0

    simulated.run(check())


def test_each_sync_of_the_log_is_measured(tmp_path: Path) -> None:
    async def check() -> None:
        async with running(tmp_path, flushDiskType="SYNC_FLUSH") as broker:
            broker.state.topics.make("Orders", 1)
            before = broker.state.store.sync.times.count
            await broker.send(to("Orders"))
            assert broker.state.store.sync.times.count > before
            found = await scrape(broker)
            count = broker.state.store.sync.times.count
            assert before < found[of("mqlake_log_sync_seconds_count")] <= count
            assert found[of("mqlake_dispatch_lag_seconds")] == 0

    simulated.run(check())


def test_each_tick_is_counted_by_its_messages(tmp_path: Path) -> None:
    async def check() -> None:
        async with running(tmp_path) as broker:
            broker.state.topics.make("Orders", 1)
            store, before = broker.state.store, await scrape(broker)
            await store.put_many([Message("Orders", b"x") for _ in range(5)])
            store.core.tick()
            store.core.tick()  # It has nothing to dispatch, and does not count.
            found = await scrape(broker)
            name = "mqlake_tick_messages"
            for part, added in (("_count", 1), ("_sum", 5)):
                key = of(f"{name}{part}")
                assert found[key] - before[key] == added
            for bound, added in (("4.0", 0), ("16.0", 1)):
                key = of(f"{name}_bucket", le=bound)
                assert found[key] - before[key] == added

    simulated.run(check())
