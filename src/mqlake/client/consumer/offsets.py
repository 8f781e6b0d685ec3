"""Where a consumer stands in its queues.

Upstream: `RemoteBrokerOffsetStore`, `LocalFileOffsetStore`.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Protocol

from mqlake.client.consumer.broker_calls import BrokerCalls
from mqlake.errors import FormatError, MqlakeError
from mqlake.protocol.bodies.message_queue import MessageQueue
from mqlake.protocol.bodies.queue_tables import (
    encode_queue,
    encode_with_table,
    join_queues,
    read_object,
    read_queue_table,
)

_log = logging.getLogger(__name__)

_LOCAL = Path(".rocketmq_offsets")


class Offsets(Protocol):
    """Keeps where a consumer goes on after a restart."""

    async def read(self, queue: MessageQueue) -> int | None:
        """Return where to go on in a queue, None if nothing is known.

        Raises:
            MqlakeError: that cannot be found out now.
        """
        ...

    async def commit(self, offsets: dict[MessageQueue, int], *, is_last: bool = False) -> None:
        """Keep where to go on; what cannot be kept now is kept the next time.

        Args:
            is_last: return only once it is kept.
        """
        ...


class GroupOffsets:
    """Offsets that the brokers keep for the whole group."""

    def __init__(self, calls: BrokerCalls) -> None:
        self._calls = calls
        self._committed: dict[MessageQueue, int] = {}

    async def read(self, queue: MessageQueue) -> int | None:
        self._committed.pop(queue, None)
        return await self._calls.offset_of_group(queue)

    async def commit(self, offsets: dict[MessageQueue, int], *, is_last: bool = False) -> None:
        for queue, offset in offsets.items():
            if self._committed.get(queue) == offset and not is_last:
                continue
            try:
                if is_last:
                    await self._calls.commit_and_wait(queue, offset)
                else:
                    await self._calls.commit(queue, offset)
                self._committed[queue] = offset
            except MqlakeError as error:
                _log.warning("the offset %d of %s is not kept yet: %s", offset, queue, error)


class NoOffsets:
    """Of a reader without a group: it begins where it is told to, each time."""

    async def read(self, queue: MessageQueue) -> int | None:  # noqa: ARG002
        return None

    async def commit(self, offsets: dict[MessageQueue, int], *, is_last: bool = False) -> None:
        """Do nothing."""


class LocalOffsets:
    """Offsets of a broadcasting consumer, in a file that Java clients read and write, too.

    Args:
        home: directory in which `.rocketmq_offsets` is; the user's if it is None.
    """

    def __init__(self, client_id: str, group: str, home: Path | None = None) -> None:
        self._path = (home or Path.home()) / _LOCAL / client_id / group / "offsets.json"
        self._offsets: dict[MessageQueue, int] | None = None

    async def read(self, queue: MessageQueue) -> int | None:
        return self._table().get(queue)

    async def commit(self, offsets: dict[MessageQueue, int], *, is_last: bool = False) -> None:  # noqa: ARG002
        table = self._table()
        new = {queue: max(offset, table.get(queue, 0)) for queue, offset in offsets.items()}
        if all(table.get(queue) == offset for queue, offset in new.items()):
            return
        table.update(new)
        entries = join_queues(encode_queue(queue, offset) for queue, offset in table.items())
        try:
            self._write(encode_with_table({"offsetTable": entries}))
        except OSError as error:
            _log.warning("%s: offsets are not kept yet: %s", self._path, error.strerror)

    def _table(self) -> dict[MessageQueue, int]:
        if self._offsets is None:
            self._offsets = self._read(self._path) or self._read(self._backup) or {}
        return self._offsets

    @property
    def _backup(self) -> Path:
        return self._path.with_name(self._path.name + ".bak")

    def _read(self, path: Path) -> dict[MessageQueue, int] | None:
        try:
            return read_queue_table(read_object(path.read_bytes()).get("offsetTable") or {}, int)
        except FileNotFoundError:
            return None
        except (OSError, FormatError) as error:
            _log.warning("%s cannot be read: %s", path, error)
            return None

    def _write(self, data: bytes) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        if self._path.exists():
            self._path.replace(self._backup)
        new = self._path.with_name(self._path.name + ".tmp")
        new.write_bytes(data)
        new.replace(self._path)
