"""Where waiting messages are read: from a broker by requests, or from a store directory.

The requests are those that `mqadmin` and slaves use, so RocketMQ's brokers answer them, too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, Protocol

from mqlake.admin import messages
from mqlake.admin.admin import Admin
from mqlake.client.cluster import MasterBroker
from mqlake.errors import FormatError
from mqlake.formats import timer_checkpoint
from mqlake.formats.config import ConsumerOffsets, DelayOffsets
from mqlake.formats.config.consumer_offset import TOPIC_GROUP_SEPARATOR
from mqlake.formats.record import Record
from mqlake.formats.timer_checkpoint import TimerCheckpoint, TimerPosition
from mqlake.protocol.bodies.stats import TopicStats
from mqlake.protocol.body import decode_answer
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.header import Header
from mqlake.protocol.headers.admin import TopicNameHeader
from mqlake.protocol.headers.offsets import OffsetHeader, QueryConsumerOffsetHeader
from mqlake.storage.local import LocalDirectory
from mqlake.storage.read_file import read_file
from mqlake.store.config.config_files import read_config
from mqlake.store.reader import StoreReader

_TIMER_CHECKPOINT = "config/timercheck"


class QueueEnds(NamedTuple):
    """The queue offsets [first, end) that a queue has."""

    first: int
    end: int


class WaitingSource(Protocol):
    """A broker, or its store directory."""

    @property
    def name(self) -> str:
        """The name of the broker; empty if it is not known."""
        ...

    async def queues(self, topic: str) -> dict[int, QueueEnds]:
        """Return the queues of a topic; none if the topic does not exist."""
        ...

    async def read(self, topic: str, queue_id: int, offset: int, most: int) -> list[Record]:
        """Return messages of a queue from a queue offset on, up to a maximum."""
        ...

    async def committed(self, group: str, topic: str, queue_id: int) -> int | None:
        """Return the offset of a consumer group; None if it has none."""
        ...

    async def delay_offsets(self) -> Mapping[int, int]:
        """Return how far each delay level (1 the first) was delivered."""
        ...

    async def timer(self) -> tuple[TimerCheckpoint, TimerPosition | None]:
        """Return which timer messages were delivered."""
        ...


class BrokerSource:
    """A running broker: see `WaitingSource`."""

    def __init__(self, admin: Admin, broker: MasterBroker) -> None:
        self._admin, self._broker = admin, broker
        self.name = broker.name

    async def queues(self, topic: str) -> dict[int, QueueEnds]:
        header = TopicNameHeader(topic=topic)
        try:
            answer = await self._ask(RequestCode.GET_TOPIC_STATS_INFO, header)
        except RemotingError as error:
            if error.code != ResponseCode.TOPIC_NOT_EXIST:
                raise
            return {}  # Nothing was sent to it yet.
        table = TopicStats.decode(answer.body).offset_table
        return {
            queue.queue_id: QueueEnds(at.min_offset, at.max_offset) for queue, at in table.items()
        }

    async def read(self, topic: str, queue_id: int, offset: int, most: int) -> list[Record]:
        return await messages.read(self._admin, self._broker, topic, queue_id, offset, most)

    async def committed(self, group: str, topic: str, queue_id: int) -> int | None:
        header = QueryConsumerOffsetHeader(
            consumer_group=group,
            topic=topic,
            queue_id=queue_id,
            set_zero_if_not_found=False,
        )
        try:
            answer = await self._ask(RequestCode.QUERY_CONSUMER_OFFSET, header)
        except RemotingError as error:
            if error.code != ResponseCode.QUERY_NOT_FOUND:
                raise
            return None
        return answer.header(OffsetHeader).offset

    async def delay_offsets(self) -> Mapping[int, int]:
        answer = await self._ask(RequestCode.GET_ALL_DELAY_OFFSET)
        return decode_answer(DelayOffsets, answer.body).offset_table

    async def timer(self) -> tuple[TimerCheckpoint, TimerPosition | None]:
        answer = await self._ask(RequestCode.GET_TIMER_CHECK_POINT)
        return timer_checkpoint.decode(bytes(answer.body))

    async def _ask(self, code: RequestCode, header: Header | None = None) -> Command:
        return await self._admin.ask(self._broker.address, code, header)


class DirectorySource:
    """A store directory, read beside whichever broker has it open: see `WaitingSource`.

    Args:
        name: of the broker.
    """

    def __init__(self, path: Path, name: str) -> None:
        self.name = name
        self._path, self._reader = path, StoreReader.open(path)

    def close(self) -> None:
        """Close the store's files."""
        self._reader.close()

    async def queues(self, topic: str) -> dict[int, QueueEnds]:
        def look() -> dict[int, QueueEnds]:
            reader = self._reader
            return {
                queue_id: QueueEnds(*reader.queue(topic, queue_id))
                for queue_id in reader.queues(topic)
            }

        return await asyncio.to_thread(look)

    async def read(self, topic: str, queue_id: int, offset: int, most: int) -> list[Record]:
        found = await asyncio.to_thread(self._reader.get, topic, queue_id, offset, most)
        return list(found.records)

    async def committed(self, group: str, topic: str, queue_id: int) -> int | None:
        directory = LocalDirectory(self._path)
        table = await asyncio.to_thread(read_config, directory, ConsumerOffsets)
        queues = table.offset_table.get(f"{topic}{TOPIC_GROUP_SEPARATOR}{group}") if table else None
        return queues.get(queue_id) if queues else None

    async def delay_offsets(self) -> Mapping[int, int]:
        directory = LocalDirectory(self._path)
        table = await asyncio.to_thread(read_config, directory, DelayOffsets)
        return table.offset_table if table else {}

    async def timer(self) -> tuple[TimerCheckpoint, TimerPosition | None]:
        data = read_file(LocalDirectory(self._path), _TIMER_CHECKPOINT, timer_checkpoint.SIZE)
        try:
            return timer_checkpoint.decode(data or b"")
        except FormatError:
            return TimerCheckpoint(), None
