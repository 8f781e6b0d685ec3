"""A broker's pages for monitoring: metrics, liveness and readiness."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest

from mqlake.broker.broker import Broker
from mqlake.broker.metrics.observed_broker import ObservedBroker
from mqlake.broker.settings import make_broker_settings
from mqlake.errors import StoreError
from mqlake.formats.config.subscription_group import SubscriptionGroup
from mqlake.protocol.body import encode_body
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.headers.admin import CreateTopicHeader
from mqlake.store import MessageStore
from tests import simulated
from tests.broker.metrics.scraping import READER, SENT, TOPIC, get, get_of, of, scrape, use
from tests.broker.pull.pulls import GROUP, polls, start_pull
from tests.broker.running import SMALL, next_port, running, to
from tests.replication.slaves import Slave, close_all, server
from tests.until import until


def test_counts_and_lag_are_those_of_the_broker(tmp_path: Path) -> None:
    async def check() -> None:
        async with running(tmp_path) as broker:
            consumer = await use(broker)
            broker.runtime.slices.start(broker.state.stats.look())  # measures sizes
            found = await scrape(broker)
            put = {"topic": TOPIC, "message_type": "normal", "is_system": "false"}
            got = {"topic": TOPIC, "consumer_group": GROUP, "is_system": "false"}
            size = broker.state.store.watermarks.end
            assert found[of("rocketmq_messages_in_total", **put)] == SENT
            assert found[of("rocketmq_throughput_in_total", **put)] == size
            assert found[of("rocketmq_messages_out_total", **got)] == SENT
            assert found[of("rocketmq_throughput_out_total", **got)] == size
            assert found[of("rocketmq_consumer_lag_messages", **READER)] == SENT - 2
            assert found[of("rocketmq_consumer_inflight_messages", **READER)] == SENT - 2
            assert found[of("rocketmq_consumer_ready_messages", **READER)] == 0
            assert found[of("rocketmq_consumer_queueing_latency_milliseconds", **READER)] == 0
            assert found[of("rocketmq_topic_number")] == len(broker.state.topics)
            assert found[of("mqlake_requests_total", request_code="send_message_v2")] == SENT
            assert found[of("mqlake_store_writable")] == 1
            connected = {name: of_kind for (name, of_kind), count in found.items() if count == 1}
            assert dict(connected["rocketmq_consumer_connections"]).items() >= {
                ("consumer_group", GROUP),
                ("consume_mode", "push"),
            }
            await consumer.close()

    simulated.run(check())


def test_the_age_of_the_oldest_message_grows_until_it_is_consumed(tmp_path: Path) -> None:
    async def check() -> None:
        async with running(tmp_path) as broker:
            consumer = await use(broker)
            key = of("rocketmq_consumer_lag_latency_milliseconds", **READER)
            before = broker.state.store.reads.head_from(TOPIC, 0, 2)
            assert before is not None
            age = broker.state.store.clock.milliseconds() - before.store_timestamp
            assert (await scrape(broker))[key] >= age
            broker.state.store.config.consumer_offsets.commit(GROUP, TOPIC, 0, SENT)
            assert (await scrape(broker))[key] == 0
            await consumer.close()

    simulated.run(check())


def test_a_deleted_topic_has_no_samples(tmp_path: Path) -> None:
    async def check() -> None:
        async with running(tmp_path) as broker:
            consumer = await use(broker)
            with broker.state.topics.deleting(TOPIC):
                broker.state.topics.remove(TOPIC)
            names = [name for name, _ in await scrape(broker)]
            assert "rocketmq_messages_in_total" not in names
            await consumer.close()

    simulated.run(check())


def test_labels_of_the_settings_are_on_all_samples() -> None:
    settings = make_broker_settings({"metricsLabel": "zone:a,rack:7", "brokerName": "b-1"})
    assert ObservedBroker(settings, lambda: None).labels == {
        "zone": "a",
        "rack": "7",
        "cluster": "DefaultCluster",
        "node_type": "broker",
        "node_id": "b-1",
    }
    with pytest.raises(StoreError, match="metricsLabel"):
        make_broker_settings({"metricsLabel": "no colon"})


def test_ready_says_why_not(tmp_path: Path) -> None:
    async def check() -> None:
        assert (await get(None, "/readyz")).status is HTTPStatus.SERVICE_UNAVAILABLE
        assert (await get(None, "/livez")).status is HTTPStatus.OK
        async with running(tmp_path) as broker:
            assert (await get(broker.broker, "/readyz")).status is HTTPStatus.OK
            broker.state.store.core.health.fail(StoreError("the disk is gone"))
            page = await get(broker.broker, "/readyz")
            assert page.status is HTTPStatus.SERVICE_UNAVAILABLE
            assert b"the disk is gone" in page.body

    with pytest.raises(StoreError, match="the disk is gone"):
        simulated.run(check())


def test_a_full_disk_and_missing_slaves_are_reasons(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"brokerRole": "SYNC_MASTER", "inSyncReplicas": 2}

    async def check() -> None:
        async with running(tmp_path, **settings) as broker:
            page = await get(broker.broker, "/readyz")
            assert page.status is HTTPStatus.SERVICE_UNAVAILABLE
            assert b"inSyncReplicas requires 1 slaves" in page.body
            slave = await Slave.connect(server(broker).address)
            slave.report(broker.state.store.watermarks.end)
            await until(lambda: broker.state.store.copies.in_sync == 1)
            assert (await get(broker.broker, "/readyz")).status is HTTPStatus.OK
            retention = broker.state.store.core.health._retention
            monkeypatch.setattr(retention, "not_writable", "the disk is 95 % full")
            broker.state.store.core.health.update()
            page = await get(broker.broker, "/readyz")
            assert page.status is HTTPStatus.SERVICE_UNAVAILABLE
            assert b"95 % full" in page.body
            monkeypatch.undo()
            broker.state.store.core.health.update()
            assert (await get(broker.broker, "/readyz")).status is HTTPStatus.OK
            await close_all()

    asyncio.run(check())


def test_sizes_and_creations_have_histograms(tmp_path: Path) -> None:
    async def check() -> None:
        async with running(tmp_path) as broker:
            await broker.send(to(TOPIC), b"x" * 100)
            await broker.send(to(TOPIC), b"x" * 2000)
            broker.records(TOPIC)
            broker.runtime.slices.start(broker.state.stats.look())
            for name in ("Made", "bad name", "TBW102"):
                header = CreateTopicHeader(
                    topic=name,
                    default_topic="TBW102",
                    read_queue_nums=1,
                    write_queue_nums=1,
                    perm=6,
                    topic_filter_type="SINGLE_TAG",
                )
                await broker.ask(RequestCode.UPDATE_AND_CREATE_TOPIC, header)
            group = encode_body(SubscriptionGroup(group_name="made"))
            await broker.ask(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=group)
            found = await scrape(broker)
            labels = {"topic": TOPIC, "message_type": "normal", "is_system": "false"}
            name = "rocketmq_message_size"
            assert found[of(f"{name}_bucket", le="1024.0", **labels)] == 1
            assert found[of(f"{name}_bucket", le="4096.0", **labels)] == 2
            assert found[of(f"{name}_sum", **labels)] == broker.state.store.watermarks.end
            name = "rocketmq_topic_create_execution_time_milliseconds_count"
            good, bad = {"invocation_status": "success"}, {"invocation_status": "failure"}
            assert found[of(name, **good, is_system="false")] == 1
            assert found[of(name, **bad, is_system="false")] == 1
            assert found[of(name, **bad, is_system="true")] == 1
            name = "rocketmq_consumer_group_create_execution_time_milliseconds_count"
            assert found[of(name, **good, is_system="false")] == 1

    simulated.run(check())


def test_each_request_has_a_latency(tmp_path: Path) -> None:
    async def check() -> None:
        async with running(tmp_path, metricsExporterType="PROM") as broker:
            consumer = await use(broker)
            waiting = start_pull(consumer, SENT, 60_000)
            await until(lambda: len(polls(broker)) == 1)
            await broker.send(to(TOPIC), b"another")
            assert len((await waiting).records) == 1
            found = await scrape(broker)
            good = {"protocol_type": "remoting", "response_code": "success", "result": "success"}
            sends = good | {"request_code": "send_message_v2", "is_long_polling": "false"}
            name = "rocketmq_rpc_latency_milliseconds"
            assert found[of(f"{name}_count", **sends)] == SENT + 1
            assert found[of(f"{name}_bucket", le="+Inf", **sends)] == SENT + 1
            pulls = good | {"request_code": "pull_message", "is_long_polling": "true"}
            assert found[of(f"{name}_count", **pulls)] == 1
            await consumer.close()

    simulated.run(check())


def test_nothing_is_measured_if_nobody_asks(tmp_path: Path) -> None:
    async def check() -> None:
        async with running(tmp_path) as broker:
            assert broker.broker.latencies is None

    simulated.run(check())


def test_a_recovery_says_how_far_it_is() -> None:
    async def check() -> None:
        observed = ObservedBroker(make_broker_settings({}), lambda: None)
        observed.recovering(50, 200)
        assert b"50 of 200 bytes, 25 %" in (await get_of(observed, "/readyz")).body
        text = (await get_of(observed, "/metrics")).body.decode()
        (done,) = [line for line in text.splitlines() if line.startswith("mqlake_recovery_d")]
        assert done.startswith("mqlake_recovery_done_bytes{")
        assert done.endswith(" 50.0")

    simulated.run(check())


def test_a_broker_passes_on_how_far_its_recovery_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opening, told = MessageStore.open, list[tuple[int, int]]()

    def opened(*given: Any, progress: Any, **others: Any) -> MessageStore:
        progress(1, 2)
        return opening(*given, progress=progress, **others)

    async def check() -> None:
        settings = make_broker_settings(
            {**SMALL, "storePathRootDir": str(tmp_path), "listenPort": next_port()}
        )
        monkeypatch.setattr(MessageStore, "open", opened)
        async with Broker(settings, progress=lambda done, total: told.append((done, total))):
            assert told == [(1, 2)]

    simulated.run(check())
