"""What a store does by the clock: flush, keep tables, remove files."""

from __future__ import annotations

import time
from typing import Any

from mqlake.protocol.codes import ResponseCode
from mqlake.storage.protocol import DiskUsage
from mqlake.store.append.message import Message
from tests.broker.live.observing import DAY, NEVER, change, observes, until
from tests.broker.running import Running, to

ALL_HOURS = ";".join(f"{hour:02}" for hour in range(24))
NOT_NOW = f"{(time.localtime().tm_hour + 12) % 24:02}"

# Flush

PAGES = 1_000_000


def is_flushed(broker: Running) -> bool:
    log = broker.state.store.core.log
    return log.flushed == log.end


async def flushed_by(broker: Running, **values: object) -> None:
    await broker.send(to("Orders"))
    broker.state.store.core.tick()
    assert not is_flushed(broker)
    await change(broker, **values)
    await until(lambda: is_flushed(broker))


@observes("flushIntervalCommitLog", **NEVER, flushCommitLogLeastPages=0)
async def flush_interval(broker: Running) -> None:
    await flushed_by(broker, flushIntervalCommitLog=10)


LATE = {**NEVER, "flushIntervalCommitLog": 10, "flushCommitLogThoroughInterval": DAY}


@observes("flushCommitLogLeastPages", **LATE, flushCommitLogLeastPages=PAGES)
async def flush_least_pages(broker: Running) -> None:
    await flushed_by(broker, flushCommitLogLeastPages=0)


@observes("flushCommitLogThoroughInterval", **LATE, flushCommitLogLeastPages=PAGES)
async def flush_thorough_interval(broker: Running) -> None:
    await flushed_by(broker, flushCommitLogThoroughInterval=0)


@observes("flushIntervalConsumeQueue", **NEVER, flushConsumeQueueLeastPages=0)
async def queue_flush_interval(broker: Running) -> None:
    await flushed_by(broker, flushIntervalConsumeQueue=10)


OF_QUEUES = {**NEVER, "flushIntervalConsumeQueue": 10, "flushConsumeQueueThoroughInterval": DAY}


@observes("flushConsumeQueueLeastPages", **OF_QUEUES, flushConsumeQueueLeastPages=PAGES)
async def queue_flush_least_pages(broker: Running) -> None:
    await flushed_by(broker, flushConsumeQueueLeastPages=0)


@observes("flushConsumeQueueThoroughInterval", **OF_QUEUES, flushConsumeQueueLeastPages=PAGES)
async def queue_flush_thorough_interval(broker: Running) -> None:
    await flushed_by(broker, flushConsumeQueueThoroughInterval=0)


# Tables


@observes("flushConsumerOffsetInterval", flushConsumerOffsetInterval=DAY)
async def consumer_offset_interval(broker: Running) -> None:
    path = broker.runtime.settings.store_path / "config" / "consumerOffset.json"
    broker.state.store.core.config.consumer_offsets.commit("marked", "T", 0, 5)
    await change(broker, flushConsumerOffsetInterval=10)
    await until(lambda: path.exists() and "marked" in path.read_text())


@observes(
    "flushDelayOffsetInterval",
    flushDelayOffsetInterval=DAY,
    messageDelayLevel="1s",
    flushCommitLogLeastPages=0,
)
async def delay_offset_interval(broker: Running) -> None:
    path = broker.runtime.settings.store_path / "config" / "delayOffset.json"
    await broker.send(to("Orders", properties="DELAY\x011\x02"))
    await change(broker, flushDelayOffsetInterval=10)
    await until(path.exists)


# Retention

SEGMENTS: dict[str, Any] = {
    "mappedFileSizeCommitLog": 4096,
    "flushIntervalCommitLog": 10,
    "flushCommitLogLeastPages": 0,
    "flushIntervalConsumeQueue": 10,
    "flushConsumeQueueLeastPages": 0,
    "cleanResourceInterval": 20,
    "deleteCommitLogFilesInterval": 0,
}
EXPIRED: dict[str, Any] = {**SEGMENTS, "fileReservedTime": 0, "deleteWhen": ALL_HOURS}
KEPT: dict[str, Any] = {**SEGMENTS, "fileReservedTime": 1000, "deleteWhen": NOT_NOW}


async def fill(broker: Running, used: int = 50) -> None:
    """Put messages into several files; the disk is as full as is said, in percent."""
    core: Any = broker.state.store.core
    core.directory.usage = lambda: DiskUsage(100, 100 - used)
    for _ in range(12):
        await broker.state.store.put(Message("Orders", bytes(1500)))
    core.durability.sync_log()
    core.durability.checkpoint()


def first(broker: Running) -> int:
    return broker.state.store.core.log.min_offset


async def removed_by(broker: Running, used: int = 50, **values: object) -> None:
    await fill(broker, used)
    core = broker.state.store.core
    if "cleanResourceInterval" not in values:
        core.retention.check()
    if "deleteCommitLogFilesInterval" not in values:
        core.retention.remove_next()
    assert first(broker) == 0
    await change(broker, **values)
    await until(lambda: first(broker) > 0)


@observes("fileReservedTime", **EXPIRED | {"fileReservedTime": 1000})
async def file_reserved_time(broker: Running) -> None:
    await removed_by(broker, fileReservedTime=0)


@observes("deleteWhen", **EXPIRED | {"deleteWhen": NOT_NOW})
async def delete_when(broker: Running) -> None:
    await removed_by(broker, deleteWhen=ALL_HOURS)


@observes("cleanResourceInterval", **EXPIRED | {"cleanResourceInterval": DAY})
async def clean_resource_interval(broker: Running) -> None:
    await removed_by(broker, cleanResourceInterval=20)


@observes("deleteCommitLogFilesInterval", **EXPIRED | {"deleteCommitLogFilesInterval": DAY})
async def delete_files_interval(broker: Running) -> None:
    await removed_by(broker, deleteCommitLogFilesInterval=0)


@observes("deleteFileBatchMax", **KEPT, deleteFileBatchMax=1)
async def delete_file_batch(broker: Running) -> None:
    await fill(broker)
    await change(broker, cleanResourceInterval=DAY)
    core: Any = broker.state.store.core
    for most, left in ((1, 1), (3, 3)):
        await change(broker, deleteFileBatchMax=most, fileReservedTime=0)
        before = first(broker)
        core.retention.clean()
        core.retention.check()
        await until(lambda before=before, left=left: first(broker) >= before + left * 4096)


@observes("cleanFileForciblyEnable", **KEPT, cleanFileForciblyEnable=False)
async def clean_forcibly(broker: Running) -> None:
    await removed_by(broker, 88, cleanFileForciblyEnable="true")


@observes("diskMaxUsedSpaceRatio", **EXPIRED | {"deleteWhen": NOT_NOW})
async def most_used_ratio(broker: Running) -> None:
    await removed_by(broker, 50, diskMaxUsedSpaceRatio=40)


@observes("diskSpaceCleanForciblyRatio", **KEPT)
async def clean_forcibly_ratio(broker: Running) -> None:
    await removed_by(broker, 70, diskSpaceCleanForciblyRatio=60)


@observes("diskSpaceWarningLevelRatio", **KEPT)
async def warning_ratio(broker: Running) -> None:
    await fill(broker, 60)
    assert (await broker.send(to("Orders"))).code == ResponseCode.SUCCESS
    await change(broker, diskSpaceWarningLevelRatio=50)
    await until(lambda: broker.state.store.core.health.not_writable is not None)
    assert (await broker.send(to("Orders"))).code == ResponseCode.SERVICE_NOT_AVAILABLE


@observes("maxCommitLogBytes", **KEPT)
async def commit_log_bytes(broker: Running) -> None:
    await removed_by(broker, maxCommitLogBytes=1)
