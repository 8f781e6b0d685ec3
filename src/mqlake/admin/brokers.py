"""Brokers: list them, show their status and settings, and clean up."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec

from mqlake.admin.admin import Admin
from mqlake.admin.each_broker import Changed, change_each, changed_brokers
from mqlake.admin.groups import QueueProgress, progress_in
from mqlake.protocol.bodies.ha import HaRuntimeInfo
from mqlake.protocol.bodies.route import BrokerData, KVTable
from mqlake.protocol.bodies.stats import BrokerConsumeStats
from mqlake.protocol.body import decode_answer
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.header import Header
from mqlake.protocol.headers.admin import (
    BrokerConsumeStatsHeader,
    ExportConfigsHeader,
    TimerEngineHeader,
)
from mqlake.remoting.errors import ConnectionFailedError, RequestTimeoutError
from mqlake.store.settings import parse_properties, properties_text


class BrokerRow(msgspec.Struct, rename="camel"):
    """A broker: rates in messages a second, totals since its start, the disk's use in percent.

    Attributes:
        broker_id: 0 for a master.
        activated: whether the broker answers and serves; all numbers are 0 if it does not answer.
    """

    cluster: str
    broker_name: str
    broker_id: int
    address: str
    version: str
    in_tps: float
    out_tps: float
    in_total: int
    out_total: int
    disk_percent: float
    activated: bool


class GroupQueueProgress(QueueProgress, rename="camel"):
    """A group, and its offset in a queue."""

    group: str = ""


async def clusters(admin: Admin) -> list[BrokerRow]:
    """Return all brokers with their status. They are asked at the same time."""
    table = (await admin.cluster_info()).broker_addr_table
    return await asyncio.gather(
        *(
            _row(admin, data, broker_id, address)
            for data in sorted(table.values(), key=lambda each: (each.cluster, each.broker_name))
            for broker_id, address in sorted(data.broker_addrs.items())
        )
    )


async def _row(admin: Admin, data: BrokerData, broker_id: int, address: str) -> BrokerRow:
    try:
        facts = await status(admin, address)
    except (ConnectionFailedError, RequestTimeoutError):
        facts = dict[str, str]()  # The other brokers are shown all the same.
    return BrokerRow(
        cluster=data.cluster,
        broker_name=data.broker_name,
        broker_id=broker_id,
        address=address,
        version=facts.get("brokerVersionDesc", ""),
        in_tps=_first_rate(facts.get("putTps")),
        out_tps=_first_rate(facts.get("getTransferredTps")),
        in_total=int(facts.get("msgPutTotalTodayNow", 0)),
        out_total=int(facts.get("msgGetTotalTodayNow", 0)),
        disk_percent=round(100 * float(facts.get("commitLogDiskRatio", 0)), 1),
        activated=facts.get("brokerActive") == "true",
    )


def _first_rate(text: str | None) -> float:
    words = (text or "").split()
    return round(float(words[0]), 2) if words else 0.0


async def status(admin: Admin, address: str) -> dict[str, str]:
    """Return the runtime status of a broker, by RocketMQ's names."""
    answer = await admin.ask(address, RequestCode.GET_BROKER_RUNTIME_INFO)
    return decode_answer(KVTable, answer.body).table


async def status_of(admin: Admin, broker: str) -> dict[str, str]:
    """Return the runtime status of a broker; `broker` is its name or address."""
    return await status(admin, (await admin.broker(broker)).address)


async def config(admin: Admin, broker: str) -> dict[str, str]:
    """Return a broker's settings."""
    address = (await admin.broker(broker)).address
    answer = await admin.ask(address, RequestCode.GET_BROKER_CONFIG)
    return parse_properties(bytes(answer.body).decode("utf-8", "replace"))


async def update_config(
    admin: Admin, name: str, value: str, cluster: str | None, broker: str | None
) -> list[Changed]:
    """Change a setting of one broker, or of all brokers of a cluster."""
    body = properties_text([(name, value)]).encode()
    return await _tell(admin, RequestCode.UPDATE_BROKER_CONFIG, cluster, broker, body)


async def _tell(
    admin: Admin,
    code: RequestCode,
    cluster: str | None,
    broker: str | None,
    body: bytes = b"",
    header: Header | None = None,
) -> list[Changed]:
    answers = await change_each(
        await admin.brokers(cluster, broker),
        lambda each: admin.ask(each.address, code, header, body),
    )
    return changed_brokers(answers)


async def clean_queues(admin: Admin, cluster: str | None, broker: str | None) -> list[Changed]:
    """Remove queue files whose messages are no longer in the log."""
    return await _tell(admin, RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE, cluster, broker)


async def clean_topics(admin: Admin, cluster: str | None, broker: str | None) -> list[Changed]:
    """Remove the queues of deleted topics."""
    return await _tell(admin, RequestCode.CLEAN_UNUSED_TOPIC, cluster, broker)


async def delete_expired(admin: Admin, cluster: str | None, broker: str | None) -> list[Changed]:
    """Remove expired commit log files now, at any hour."""
    return await _tell(admin, RequestCode.DELETE_EXPIRED_COMMITLOG, cluster, broker)


async def switch_timer_engine(
    admin: Admin, engine: str, cluster: str | None, broker: str | None
) -> list[Changed]:
    """Switch the storage engine of timer messages.

    Args:
        engine: "F" for files, "R" for RocksDB, which mqlake's broker does not have.
    """
    header = TimerEngineHeader(engine=engine)
    return await _tell(admin, RequestCode.SWITCH_TIMER_ENGINE, cluster, broker, header=header)


async def export_configs(
    admin: Admin, kinds: Sequence[str], cluster: str | None, broker: str | None
) -> list[Changed]:
    """Have brokers export their RocksDB tables as JSON files.

    Args:
        kinds: topics, subscriptionGroups, consumerOffsets.
    """
    header = ExportConfigsHeader(config_type=";".join(kinds))
    code = RequestCode.EXPORT_ROCKSDB_CONFIG_TO_JSON
    return await _tell(admin, code, cluster, broker, header=header)


async def consume_stats(admin: Admin, broker: str) -> list[GroupQueueProgress]:
    """Return the offsets of all groups in all queues of a broker."""
    address = (await admin.broker(broker)).address
    header = BrokerConsumeStatsHeader()
    answer = await admin.ask(address, RequestCode.GET_BROKER_CONSUME_STATS, header)
    return [
        GroupQueueProgress(*msgspec.structs.astuple(progress_in(queue, at)), group=group)
        for group, every in sorted(BrokerConsumeStats.decode(answer.body).groups.items())
        for stats in every
        for queue, at in stats.offset_table.items()
    ]


async def ha_status(admin: Admin, broker: str) -> HaRuntimeInfo:
    """Return the positions of a broker's log and of its slaves."""
    address = (await admin.broker(broker)).address
    answer = await admin.ask(address, RequestCode.GET_BROKER_HA_STATUS)
    return decode_answer(HaRuntimeInfo, answer.body)
