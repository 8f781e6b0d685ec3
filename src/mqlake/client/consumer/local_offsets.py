"""The offsets of a broadcasting consumer, on its own machine (upstream: `LocalFileOffsetStore`)."""

from __future__ import annotations

import logging
from pathlib import Path

from mqlake.client.errors import ClientError
from mqlake.errors import DiskError, FormatError, raise_passing
from mqlake.protocol.bodies.message_queue import MessageQueue
from mqlake.protocol.bodies.queue_tables import (
    encode_queue,
    encode_with_table,
    join_queues,
    read_object,
    read_queue_table,
)
from mqlake.storage.durable import replace_file
from mqlake.storage.local_owned import LocalOwnedDirectory, disk_error

_DIRECTORY = Path(".rocketmq_offsets")
_FILE = "offsets.json"
_BACKUP = "offsets.json.bak"

_log = logging.getLogger(__name__)


def home_directory() -> Path:
    """Return the user's home directory.

    Raises:
        ClientError: there is no home directory, for example in a container with an unknown user and
            no HOME.
    """
    try:
        return Path.home()
    except RuntimeError:
        raise ClientError(
            "a broadcasting consumer keeps its offsets in the home directory, which does not "
            "exist: set HOME"
        ) from None


class LocalOffsets:
    """Offsets of a broadcasting consumer, in a file that Java clients also read and write.

    Args:
        home: the directory that contains `.rocketmq_offsets`.
    """

    def __init__(self, client_id: str, group: str, home: Path) -> None:
        self._path = home / _DIRECTORY / client_id / group
        self._offsets: dict[MessageQueue, int] | None = None
        self._is_changed = False

    async def read(self, queue: MessageQueue) -> int | None:
        return self._table().get(queue)

    async def note(self, queue: MessageQueue, offset: int) -> None:
        try:
            self._set(queue, offset)
        except DiskError as error:
            _log.warning("offset %d of %s is not stored yet: %s", offset, queue, error)

    async def commit(self, queue: MessageQueue, offset: int) -> None:
        self._set(queue, offset)
        self._write()

    async def settle(self, queue: MessageQueue, offset: int, *, leaves: bool) -> None:  # noqa: ARG002
        await self.commit(queue, offset)

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
        """Return the offsets, which are read from the file once.

        If the file cannot be read twice, for a reason that does not pass, the offsets are those of
        its backup, which are older: messages are delivered again.

        Raises:
            DiskError: the file cannot be read now, or neither it nor its backup can be read. To
                assume that it is empty would overwrite the offsets in it.
        """
        if self._offsets is None:
            try:
                found = self._load(_FILE)
            except DiskError as error:
                raise_passing(error)
                if (found := self._load(_BACKUP)) is None:
                    raise
                _log.warning("%s; continuing with the offsets of %s", error, _BACKUP)
            self._offsets = found or self._load(_BACKUP) or {}
        return self._offsets

    def _load(self, name: str) -> dict[MessageQueue, int] | None:
        path = self._path / name
        try:
            return read_queue_table(read_object(_read(path)).get("offsetTable") or {}, int)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise disk_error(path, error) from error
        except FormatError as error:
            _log.warning("%s cannot be read: %s", path, error)
            return None


def _read(path: Path) -> bytes:
    """Return a file's content; an error that does not recur proves nothing about the file."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise
    except OSError as error:
        _log.warning("%s: %s; reading it again", path, error.strerror)
        return path.read_bytes()
