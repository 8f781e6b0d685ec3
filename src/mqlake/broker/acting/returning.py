"""A master that returns adopts the positions of its slaves, one of which has acted for it.

Upstream: `BrokerPreOnlineService.syncMetadataReverse`. A position says that everything before it is
done. It is adopted only if this log has everything that the slave's log has, and only if it is
larger than this master's own, which may be old if this master crashed. The offsets of a slave whose
table is older than this master's are not adopted: that table lacks the latest resets and deletions.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Container, Iterable, Mapping
from time import monotonic
from typing import Final, NamedTuple, TypeVar

from mqlake.broker.settings import BrokerSettings
from mqlake.broker.state.registration.acting_members import members_of
from mqlake.client.cluster import MASTER, Cluster
from mqlake.errors import MqlakeError
from mqlake.formats.config import DataVersion
from mqlake.formats.config.consumer_offset import TOPIC_GROUP_SEPARATOR
from mqlake.formats.consume_queue import SCHEDULE_TOPIC
from mqlake.protocol import naming
from mqlake.remoting.slices import Job, Slices
from mqlake.replication.master_tables import MasterClient
from mqlake.store.config.consumer_offsets import ConsumerOffsetTable, is_older
from mqlake.store.config.delay_offsets import DelayOffsetTable
from mqlake.store.port import Store
from mqlake.tls.settings import client_tls

T = TypeVar("T")
_log: Final = logging.getLogger(__name__)

PATIENCE: Final = 10.0
"""Seconds that slaves have to answer; a master without their positions serves nevertheless."""
_AGAIN: Final = 0.5


class SlaveOffsets(NamedTuple):
    """A slave's consumer offsets by `topic@group` and queue id."""

    address: str
    log_end: int
    table: dict[str, dict[int, int]]
    version: DataVersion


class SlaveDelays(NamedTuple):
    """A slave's delivery positions by delay level."""

    address: str
    log_end: int
    offsets: dict[int, int]


def returns(settings: BrokerSettings) -> bool:
    """Return whether a broker asks its slaves when it starts."""
    return (
        settings.has_acting_master
        and not settings.is_slave
        and not settings.skip_pre_online
        and bool(settings.name_servers)
    )


async def consumer_offsets_of_slaves(
    settings: BrokerSettings, slices: Slices
) -> list[SlaveOffsets]:
    """Return the consumer offsets of all slaves that are registered and answer in time."""

    async def ask(client: MasterClient, address: str) -> SlaveOffsets:
        table, version = await client.consumer_offsets(address)
        return SlaveOffsets(address, (await client.log(address)).end, table, version)

    return await _ask_slaves(settings, slices, ask)


async def delay_offsets_of_slaves(settings: BrokerSettings) -> list[SlaveDelays]:
    """Return the delivery positions of all slaves that are registered and answer in time."""

    async def ask(client: MasterClient, address: str) -> SlaveDelays:
        offsets, _ = await client.delay_offsets(address)
        return SlaveDelays(address, (await client.log(address)).end, offsets)

    slices = Slices(lambda: (1, ""))
    try:
        return await _ask_slaves(settings, slices, ask)
    finally:
        slices.stop()


async def _ask_slaves(
    settings: BrokerSettings,
    slices: Slices,
    ask: Callable[[MasterClient, str], Awaitable[T]],
) -> list[T]:
    found: dict[str, T] = {}
    tls = client_tls(settings)
    client = MasterClient(slices, tls, settings.inner_credentials)
    deadline = monotonic() + PATIENCE

    async def ask_one(address: str) -> None:
        found[address] = await ask(client, address)

    credentials = settings.inner_credentials
    async with Cluster(settings.namesrv_addr, tls=tls, credentials=credentials) as cluster:
        try:
            while True:
                try:
                    slaves = _slaves(await members_of(cluster, settings), settings)
                    missing = [address for address in slaves if address not in found]
                    await _all(map(ask_one, missing))
                    break
                except Exception as error:  # noqa: BLE001 (whatever slaves answer, it serves)
                    failure = str(error) if isinstance(error, MqlakeError) else repr(error)
                if monotonic() >= deadline:
                    _log.warning("this master serves without all slaves' positions: %s", failure)
                    break
                await asyncio.sleep(_AGAIN)
        finally:
            await client.close()
    return list(found.values())


async def _all(calls: Iterable[Awaitable[None]]) -> None:
    """Await all calls; then raise the first of their errors."""
    for result in await asyncio.gather(*calls, return_exceptions=True):
        if isinstance(result, BaseException):
            raise result


def _slaves(members: dict[int, str], settings: BrokerSettings) -> list[str]:
    own = settings.broker_address
    return [members[i] for i in sorted(members) if i != MASTER and members[i] != own]


class OwnLog(NamedTuple):
    """This master's log as it was when the store was opened; it bounds what is adopted.

    Later, messages that become due may make it longer than the log of a slave that has messages
    which this log lacks.

    Attributes:
        end: its physical end.
        queue_ends: the next offset of each queue by topic and queue id.
        static_topics: topics whose consumer offsets are not those of this broker's queues.
    """

    end: int
    queue_ends: Mapping[tuple[str, int], int]
    static_topics: Container[str]

    def bounded(self, topic: str, queues: Mapping[int, int]) -> Mapping[int, int]:
        """Return the offsets of queues that exist, without those after the end of their queue.

        Such an offset is of an earlier topic of the same name.
        """
        if topic in self.static_topics:
            return queues
        ends = self.queue_ends
        return {each: at for each, at in queues.items() if at <= ends.get((topic, each), -1)}


def own_log(store: Store) -> OwnLog:
    """Return the log of a store that was just opened."""
    return OwnLog(store.watermarks.end, dict(store.offsets), ())


def adopt_consumer_offsets(
    found: list[SlaveOffsets], known: ConsumerOffsetTable, own: OwnLog
) -> Job[None]:
    """Adopt the offsets of slaves that are larger than those in a table."""
    version = known.version
    for slave in found:
        if not _has_log(slave.address, slave.log_end, own.end):
            continue
        if is_older(slave.version, version):
            _log.info("the consumer offsets of slave %s are older, and not adopted", slave.address)
            continue
        for key, queues in slave.table.items():
            topic, _, group = key.partition(TOPIC_GROUP_SEPARATOR)
            # The broker's own groups move with what it delivers, which no slave did.
            if group and not group.startswith(naming.SYSTEM_GROUP_PREFIX):
                known.advance(group, topic, own.bounded(topic, queues))
            yield
        known.keep_up(slave.version)
        _log.info("the consumer offsets of slave %s are adopted", slave.address)


def adopt_delay_offsets(found: list[SlaveDelays], known: DelayOffsetTable, own: OwnLog) -> None:
    """Adopt the delivery positions of slaves that are larger than those in a table."""
    for slave in found:
        if not _has_log(slave.address, slave.log_end, own.end):
            continue
        by_queue = {level - 1: offset for level, offset in slave.offsets.items()}
        for queue_id, offset in own.bounded(SCHEDULE_TOPIC, by_queue).items():
            level = queue_id + 1
            if offset > (known.get(level) or 0):
                known.set(level, offset)


def _has_log(address: str, slave_end: int, end: int) -> bool:
    """Return whether this log has everything of a slave's log."""
    if slave_end <= end:
        return True
    _log.error(
        "the log of slave %s ends at %d, and this one at %d: its positions are not adopted",
        address,
        slave_end,
        end,
    )
    return False
