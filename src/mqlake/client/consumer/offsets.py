"""The offsets of a consumer.

Upstream: `RemoteBrokerOffsetStore`, `LocalFileOffsetStore`.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Protocol

from mqlake.client.consumer.broker_calls import BrokerCalls
from mqlake.client.errors import ClientError
from mqlake.errors import DiskError, FormatError, MqlakeError
from mqlake.protocol.bodies.message_queue import MessageQueue
from mqlake.protocol.bodies.queue_tables import (
    encode_queue,
    encode_with_table,
    join_queues,
    read_object,
    read_queue_table,
)
from mqlake.storage.durable import replace_file
from mqlake.storage.local_owned import LocalOwnedDirectory

_log = logging.getLogger(__name__)

_LOCAL = Path(".rocketmq_offsets")
_FILE = "offsets.json"
_BACKUP = "offsets.json.bak"


class Offsets(Protocol):
    """Stores the queue offsets at which a consumer resumes after a restart."""

    async def read(self, queue: MessageQueue) -> int | None:
        """Return the stored offset of a queue, None if there is none.

        Raises:
            MqlakeError: it cannot be read now.
        """
        ...

    async def note(self, queue: MessageQueue, offset: int) -> None:
        """Store an offset without waiting for the result. A failure is logged, not raised."""
        ...

    async def commit(self, queue: MessageQueue, offset: int) -> None:
        """Store an offset, smaller than the stored one or not; return once it is stored.

        Raises:
            MqlakeError: it is not stored.
        """
        ...

    def flush(self) -> None:
        """Write what `note` has collected."""
        ...


class GroupOffsets:
    """Offsets that the brokers keep for the whole group."""

    def __init__(self, calls: BrokerCalls) -> None:
        self._calls = calls
        self._noted: dict[MessageQueue, int] = {}

    async def read(self, queue: MessageQueue) -> int | None:
        self._noted.pop(queue, None)
        return await self._calls.offset_of_group(queue)

    async def note(self, queue: MessageQueue, offset: int) -> None:
        if self._noted.get(queue) == offset:
            return
        try:
            await self._calls.note_offset(queue, offset)
            self._noted[queue] = offset
        except MqlakeError as error:
            _log.warning("offset %d of %s is not committed yet: %s", offset, queue, error)

    async def commit(self, queue: MessageQueue, offset: int) -> None:
        self._noted.pop(queue, None)
        await self._calls.commit_offset(queue, offset)

    def flush(self) -> None:
        """Do nothing: the brokers have everything."""


class NoOffsets:
    """Offsets of a reader without a group: none are stored."""

    async def read(self, queue: MessageQueue) -> int | None:  # noqa: ARG002
        return None

    async def note(self, queue: MessageQueue, offset: int) -> None:
        """Do nothing."""

    async def commit(self, queue: MessageQueue, offset: int) -> None:
        """Do nothing."""

    def flush(self) -> None:
        """Do nothing."""


def home_directory() -> Path:
    """Return the user's home directory.

    Raises:
        ClientError: there is none, as in a container with an unknown user and no HOME.
    """
    try:
        return Path.home()
    except RuntimeError:
        raise ClientError(
            "a broadcasting consumer keeps its offsets in the home directory, and there is none:"
            " set HOME"
        ) from None


class LocalOffsets:
    """Offsets of a broadcasting consumer, in a file that Java clients also read and write.

    Args:
        home: the directory that contains `.rocketmq_offsets`.
    """

    def __init__(self, client_id: str, group: str, home: Path) -> None:
        self._path = home / _LOCAL / client_id / group
        self._offsets: dict[MessageQueue, int] | None = None
        self._is_changed = False

    async def read(self, queue: MessageQueue) -> int | None:
        return self._table().get(queue)

    async def note(self, queue: MessageQueue, offset: int) -> None:
        self._set(queue, offset)

    async def commit(self, queue: MessageQueue, offset: int) -> None:
        self._set(queue, offset)
        self._write()

    def flush(self) -> None:
        """Write the file if offsets have changed. A failure is logged."""
        try:
            self._write()
        except DiskError as error:
            _log.warning("offsets are not stored yet: %s", error)

    def _set(self, queue: MessageQueue, offset: int) -> None:
        table = self._table()
        self._is_changed |= table.get(queue) != offset
        table[queue] = offset

    def _write(self) -> None:
        if not self._is_changed:
            return
        entries = join_queues(
            encode_queue(queue, offset) for queue, offset in self._table().items()
        )
        directory = LocalOwnedDirectory.make(self._path)
        data = encode_with_table({"offsetTable": entries})
        replace_file(directory, _FILE, data, backup=_BACKUP)
        self._is_changed = False

    def _table(self) -> dict[MessageQueue, int]:
        if self._offsets is None:
            self._offsets = self._load(_FILE) or self._load(_BACKUP) or {}
        return self._offsets

    def _load(self, name: str) -> dict[MessageQueue, int] | None:
        path = self._path / name
        try:
            return read_queue_table(read_object(path.read_bytes()).get("offsetTable") or {}, int)
        except FileNotFoundError:
            return None
        except (OSError, FormatError) as error:
            _log.warning("%s cannot be read: %s", path, error)
            return None
