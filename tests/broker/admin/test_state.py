"""What a broker says of itself, entries of queues, cleaning up."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mqlake.broker.admin.runtime import readable_size
from mqlake.errors import StoreError
from mqlake.formats.java_string import hash_code
from mqlake.protocol.bodies.ha import HaRuntimeInfo
from mqlake.protocol.bodies.route import KVTable
from mqlake.protocol.bodies.stats import BrokerStats, QueueEntries
from mqlake.protocol.body import decode_body
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import VERSION
from mqlake.protocol.headers.admin import (
    ExportConfigsHeader,
    QueryConsumeQueueHeader,
    ReadAheadHeader,
    StatsHeader,
    TimerEngineHeader,
)
from mqlake.remoting.slices import run_at_once
from tests import simulated
from tests.broker.admin.asking import done, refused, wanted
from tests.broker.clients_of import known_client
from tests.broker.running import running, to


def test_what_a_broker_says_of_itself(tmp_path: Path) -> None:
    async def check() -> None:
        async with running(tmp_path) as broker:
            code = RequestCode.GET_BROKER_RUNTIME_INFO
            empty = decode_body(KVTable, (await done(broker, code)).body).table
            assert empty["earliestMessageTimeStamp"] == "-1"
            await broker.send(to("Orders", queue_id=0))
            record = broker.records("Orders")[0]
            facts = decode_body(KVTable, (await done(broker, code)).body).table
            assert facts["msgPutTotalTodayNow"] == "1"
            assert facts["commitLogMaxOffset"] == str(record.size)
            assert facts["earliestMessageTimeStamp"] == str(record.store_timestamp)
            assert facts["brokerVersionDesc"] == "V5_5_0"
            assert int(facts["brokerVersion"]) == VERSION
            assert 0 <= float(facts["commitLogDiskRatio"]) <= 1
            assert facts["runtime"].startswith("[ 0 days, 0 hours,")
            assert len(facts["putTps"].split()) == 3
            answer = await done(broker, RequestCode.GET_BROKER_HA_STATUS)
            ha = decode_body(HaRuntimeInfo, answer.body)
            assert (ha.master, ha.master_commit_log_max_offset) == (True, record.size)
            await broker.send(to("Orders", properties="DELAY\x0118\x02"))
            broker.state.store.config.delay_offsets.set(18, 0)
            broker.state.store.core.tick()
            facts = decode_body(KVTable, (await done(broker, code)).body).table
            assert facts["scheduleMessageOffset_18"] == "0,1"

    simulated.run(check())


def test_it_says_which_services_fail(tmp_path: Path) -> None:
    async def check() -> None:
        async with running(tmp_path) as broker:
            code, core = RequestCode.GET_BROKER_RUNTIME_INFO, broker.state.store.core
            facts = decode_body(KVTable, (await done(broker, code)).body).table
            odd = ("failure", "messagesSetAside", "notWritable")
            assert not [name for name in facts if name.startswith(odd)]
            retention = next(service for service in core.services if service.name == "retention")
            retention.failed(ValueError("odd"))
            core.health.fail(StoreError("gone"))
            facts = decode_body(KVTable, (await done(broker, code)).body).table
            assert facts["failures_retention"] == "1"
            assert facts["failure_retention"] == "ValueError: odd"
            assert facts["notWritable"] == "gone"

    with pytest.raises(StoreError, match="gone"):
        simulated.run(check())


def test_statistics_by_name(tmp_path: Path) -> None:
    async def check() -> None:
        async with running(tmp_path) as broker:
            await broker.send(to("Orders", queue_id=0))
            code = RequestCode.VIEW_BROKER_STATS_DATA
            header = StatsHeader(stats_name="TOPIC_PUT_NUMS", stats_key="Orders")
            broker.state.store.core.tick()
            found = decode_body(BrokerStats, (await done(broker, code, header)).body)
            assert found.stats_minute.sum == found.stats_day.sum == 1
            (record,) = broker.records("Orders", 0)
            run_at_once(broker.state.stats.look())
            header = StatsHeader(stats_name="TOPIC_PUT_SIZE", stats_key="Orders")
            found = decode_body(BrokerStats, (await done(broker, code, header)).body)
            assert found.stats_day.sum == record.size
            header = StatsHeader(stats_name="TOPIC_PUT_NUMS", stats_key="Nothing")
            text = "The stats <TOPIC_PUT_NUMS> <Nothing> not exist"
            await refused(broker, code, header, match=text)

    simulated.run(check())


def test_entries_of_a_queue(tmp_path: Path) -> None:
    async def check() -> None:
        async with running(tmp_path) as broker:
            await done(broker, RequestCode.UPDATE_AND_CREATE_TOPIC, wanted("Orders"))
            for _ in range(3):
                await broker.send(to("Orders", queue_id=1, properties="TAGS\x01TagA\x02"))
            records = broker.records("Orders", 1)
            code = RequestCode.QUERY_CONSUME_QUEUE

            async def ask(**fields: object) -> QueueEntries:
                known: dict[str, object] = {"topic": "Orders", "queue_id": 1, "count": 2}
                header = QueryConsumeQueueHeader(**(known | fields))  # pyright: ignore[reportArgumentType]
                return decode_body(QueueEntries, (await done(broker, code, header)).body)

            found = await ask(index=1)
            assert (found.min_queue_index, found.max_queue_index) == (0, 3)
            assert [(e.physic_offset, e.physic_size, e.tags_code) for e in found.queue_data] == [
                (record.physical_offset, record.size, hash_code("TagA")) for record in records[1:]
            ]
            assert (await ask(index=99)).queue_data == []
            assert (await ask(index=0, count=-1)).queue_data == []
            assert len((await ask(index=-5, count=2**31 - 1)).queue_data) == 3
            offline = await ask(index=0, consumer_group="g")
            assert offline.filter_data == "g@Orders is not online!"
            async with known_client(broker, {}, "c1", groups="g"):
                online = await ask(index=0, consumer_group="g")
                assert online.subscription_data
                assert online.subscription_data.topic == "Orders"
            wrong = QueryConsumeQueueHeader(topic="Orders", queue_id=2, index=0, count=1)
            await refused(broker, code, wrong, match="2@Orders is not exist!")

    simulated.run(check())


def test_cleaning_up(tmp_path: Path) -> None:
    async def check() -> None:
        async with running(tmp_path) as broker:
            await broker.send(to("Orders"))
            broker.records("Orders")
            await done(broker, RequestCode.CLEAN_UNUSED_TOPIC)
            assert "Orders" in broker.state.store.core.reads.topics()
            broker.state.topics.remove("Orders")
            await done(broker, RequestCode.CLEAN_UNUSED_TOPIC)
            assert "Orders" not in broker.state.store.core.reads.topics()
            await done(broker, RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE)
            await done(broker, RequestCode.DELETE_EXPIRED_COMMITLOG)
            await done(broker, RequestCode.RESET_MASTER_FLUSH_OFFSET)
            answer = await done(broker, RequestCode.CHECK_ROCKSDB_CQ_WRITE_PROGRESS)
            assert json.loads(bytes(answer.body))["checkStatus"] == 0

    simulated.run(check())


def test_thresholds_for_cold_data_are_kept(tmp_path: Path) -> None:
    async def check() -> None:
        async with running(tmp_path) as broker:
            update = RequestCode.UPDATE_COLD_DATA_FLOW_CTR_CONFIG
            get = RequestCode.GET_COLD_DATA_FLOW_CTR_INFO
            await done(broker, update, body=b"g=1000\n")
            found = json.loads(bytes((await done(broker, get)).body))
            assert found["configTable"] == {"g": 1000}
            await done(broker, RequestCode.REMOVE_COLD_DATA_FLOW_CTR_CONFIG, body=b"g")
            assert json.loads(bytes((await done(broker, get)).body))["configTable"] == {}
            assert await refused(broker, update, body=b"g=x", match="not a number") == 29
            mode = RequestCode.SET_COMMITLOG_READ_MODE
            answer = await done(broker, mode, ReadAheadHeader(mode=1))
            assert answer.remark == "set commitlog readahead mode success, mode: 1"
            code = await refused(broker, mode, ReadAheadHeader(mode=7), match="value error")
            assert code == ResponseCode.INVALID_PARAMETER

    simulated.run(check())


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (1536, "1.5 KiB"), (3 << 30, "3.0 GiB")],
)
def test_sizes_are_readable(size: int, text: str) -> None:
    assert readable_size(size) == text


@pytest.mark.parametrize("engine", ["F", "R", "x", None])
def test_there_is_one_timer_engine(tmp_path: Path, engine: str | None) -> None:
    async def check() -> None:
        code, header = RequestCode.SWITCH_TIMER_ENGINE, TimerEngineHeader(engine=engine)
        async with running(tmp_path) as broker:
            if engine == "F":
                assert (await done(broker, code, header)).remark == "switch timer engine success"
                return
            match = "no timer engine on RocksDB" if engine == "R" else "param error"
            found = await refused(broker, code, header, match=match)
            assert found == ResponseCode.INVALID_PARAMETER

    simulated.run(check())


def test_a_broker_without_a_timer_switches_none(tmp_path: Path) -> None:
    async def check() -> None:
        async with running(tmp_path, timerWheelEnable=False) as broker:
            code, header = RequestCode.SWITCH_TIMER_ENGINE, TimerEngineHeader(engine="F")
            await refused(broker, code, header, match="timerWheelEnable is false")

    simulated.run(check())


def test_tables_are_json_already(tmp_path: Path) -> None:
    async def check() -> None:
        code = RequestCode.EXPORT_ROCKSDB_CONFIG_TO_JSON
        async with running(tmp_path) as broker:
            header = ExportConfigsHeader(config_type="topics; SubscriptionGroups;consumerOffsets;")
            assert (await done(broker, code, header)).remark == "export done."
            header = ExportConfigsHeader(config_type="topics;acl")
            await refused(broker, code, header, match="Unknown config type: acl")

    simulated.run(check())
