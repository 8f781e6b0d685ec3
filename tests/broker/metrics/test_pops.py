"""Metrics of pops and of the revive topic."""

from __future__ import annotations

from pathlib import Path

from mqlake.protocol.naming import REVIVE_PREFIX
from mqlake.testing.advanced_clock import AdvancedClock
from tests import simulated
from tests.broker.metrics.scraping import of, scrape
from tests.broker.pop.popping import GROUP, RETRY, TOPIC, acknowledge, pop, send
from tests.broker.running import running
from tests.until import until

WHOSE = {"consumer_group": GROUP, "topic": TOPIC}
STAY = 10_000
OUT = 60_000


def test_pops_are_counted_from_memory_to_the_retry_topic(tmp_path: Path) -> None:
    async def check() -> None:
        clock = AdvancedClock()
        async with running(tmp_path, clock=clock, reviveQueueNum=1) as broker:
            counts = broker.state.pop_counts
            await send(broker, "a", "b", "c")
            popped = await pop(broker, invisible_time=OUT)
            await acknowledge(broker, popped[0])
            found = await scrape(broker)
            assert found[of("rocketmq_pop_checkpoint_buffer_size")] == 1
            assert found[of("rocketmq_pop_offset_buffer_size")] == 1
            clock.advance(STAY / 1000)  # The check point is put to the revive topic.
            await until(lambda: dict(counts.put))
            assert (await scrape(broker))[of("rocketmq_pop_checkpoint_buffer_size")] == 0
            clock.advance(OUT / 1000)
            await until(lambda: sum(count for _, count in counts.retried) == 2)
            found = await scrape(broker)
            kinds = {**WHOSE, "revive_message_type": "CK"}
            name = "rocketmq_pop_revive"
            assert found[of(f"{name}_in_message_total", **kinds, put_status="PUT_OK")] == 1
            assert found[of(f"{name}_out_message_total", **kinds, queue_id="0")] == 1
            assert found[of(f"{name}_retry_messages_total", **WHOSE, put_status="PUT_OK")] == 2
            assert found[of(f"{name}_lag", queue_id="0")] == 0
            assert found[of("rocketmq_pop_buffer_scan_time_consume_milliseconds_count")] > 0
            assert len(broker.records(RETRY)) == 2

    simulated.run(check())


def test_check_points_that_wait_in_the_revive_topic_are_its_lag(tmp_path: Path) -> None:
    async def check() -> None:
        clock = AdvancedClock()
        async with running(tmp_path, clock=clock, reviveQueueNum=1) as broker:
            reads = broker.state.store.reads
            topic = REVIVE_PREFIX + broker.runtime.settings.broker_cluster_name
            await send(broker, "a")
            await pop(broker, invisible_time=OUT)
            clock.advance(STAY / 1000)
            await until(lambda: dict(broker.state.pop_counts.put))
            # It is in the timer until a second before its time, then in the revive topic.
            clock.advance((OUT - STAY) / 1000)
            await until(lambda: reads.queue(topic, 0).max_offset == 1)
            await until(lambda: dict(broker.state.pop_counts.read))
            lag = of("rocketmq_pop_revive_lag", queue_id="0")
            age = of("rocketmq_pop_revive_latency_milliseconds", queue_id="0")
            found = await scrape(broker)
            assert found[lag] == 1
            assert found[age] > 0
            clock.advance(STAY / 1000)
            await until(lambda: dict(broker.state.pop_counts.retried))
            found = await scrape(broker)
            assert (found[lag], found[age]) == (0, 0)

    simulated.run(check())


def test_check_points_of_a_deleted_group_are_not_counted_again(tmp_path: Path) -> None:
    async def check() -> None:
        clock = AdvancedClock()
        async with running(tmp_path, clock=clock, reviveQueueNum=1) as broker:
            counts, reads = broker.state.pop_counts, broker.state.store.reads
            topic = REVIVE_PREFIX + broker.runtime.settings.broker_cluster_name
            await send(broker, "a")
            await pop(broker, invisible_time=OUT)
            clock.advance(STAY / 1000)
            await until(lambda: dict(counts.put))
            assert broker.state.groups.remove(GROUP)
            await broker.runtime.slices.finish(broker.state.endings.group_ended(GROUP))
            assert not dict(counts.put)
            clock.advance((OUT - STAY) / 1000)
            await until(lambda: reads.queue(topic, 0).max_offset == 1)
            clock.advance(2 * STAY / 1000)
            await until(lambda: [each.messages for each in counts.behind()] == [0])
            assert not dict(counts.read)
            assert not dict(counts.put)
            assert not dict(counts.retried)

    simulated.run(check())
