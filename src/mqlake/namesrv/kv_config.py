"""Values by namespace and key, kept in a file (upstream: `KVConfigManager`)."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from pathlib import Path
from typing import Final

import msgspec

from mqlake.errors import FormatError, StoreError
from mqlake.formats import fastjson
from mqlake.formats.config import convert
from mqlake.namesrv.settings import NamesrvSettings
from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.errors import RemotingError
from mqlake.remoting.shares import Use
from mqlake.storage.durable import replace_file
from mqlake.storage.local_owned import LocalOwnedDirectory

ORDERED_TOPICS: Final = "ORDER_TOPIC_CONFIG"
"""Namespace of the ordered topics: "broker:queues" of each broker, separated by `;`."""

_log: Final = logging.getLogger("mqlake.namesrv")


class _File(msgspec.Struct, rename="camel"):
    config_table: dict[str, dict[str, str]] = {}


class KvConfig:
    """A table of texts by namespace and key, which is stored in a file if one is set."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._table: dict[str, dict[str, str]] = {}
        self._count = self._size = 0
        self._owners: dict[tuple[str, str], str] = {}
        self._counts, self._sizes = Counter[str](), Counter[str]()
        self._changes = self._written = 0
        self._writing = asyncio.Lock()

    def __len__(self) -> int:
        """Return the number of values."""
        return self._count

    def load(self) -> None:
        """Read the file, if it exists.

        Raises:
            StoreError: the file cannot be read, or is damaged.
        """
        if not self._path:
            return
        try:
            data = Path(self._path).expanduser().read_bytes()
            self._table = convert(fastjson.loads(data), _File).config_table
            for namespace, values in self._table.items():
                self._count += len(values)
                self._size += sum(_size(namespace, *pair) for pair in values.items())
        except FileNotFoundError:
            return
        except OSError as error:
            raise StoreError(f"{self._path}: {error.strerror}") from error
        except FormatError as error:
            raise StoreError(f"{self._path}: {error}; repair or remove the file") from error

    def get(self, namespace: str, key: str) -> str | None:
        """Return a value, None if it does not exist."""
        return self._table.get(namespace, {}).get(key)

    def namespace(self, namespace: str) -> dict[str, str] | None:
        """Return all values of a namespace, None if the namespace does not exist."""
        return self._table.get(namespace)

    async def put(
        self, namespace: str, key: str, value: str, settings: NamesrvSettings, *, owner: str = ""
    ) -> None:
        """Set a value; return once it is in the file.

        Args:
            owner: the client to whose share the value counts from now on, until it is removed or
                the process ends.

        Raises:
            DiskError: the file cannot be written; the value then counts only until the process
                ends.
            RemotingError: there would be too many values, or they would be too long, or more than
                the share of one address.
        """
        old = self.get(namespace, key)
        size = _size(namespace, key, value) - _size(namespace, key, old)
        percent = settings.max_address_share
        for use, own, more in (
            (
                Use(self._count, settings.max_kv_config_nums, "maxKvConfigNums"),
                self._counts[owner],
                int(old is None),
            ),
            (
                Use(self._size, settings.max_kv_config_size, "maxKvConfigSize"),
                self._sizes[owner],
                size,
            ),
        ):
            if more > 0 and (refusal := use.refusal(owner, own, percent, more)) is not None:
                reason = f"KV configuration: the value is not set: {refusal}"
                raise RemotingError(ResponseCode.SYSTEM_ERROR, reason)
        self._disown(namespace, key, old)
        self._owners[namespace, key] = owner
        self._counts[owner] += 1
        self._sizes[owner] += _size(namespace, key, value)
        self._count += old is None
        self._size += size
        self._table.setdefault(namespace, {})[key] = value
        _log.info("KV %s/%s has %d characters", namespace, key, len(value))
        await self._write()

    async def delete(self, namespace: str, key: str) -> None:
        """Remove a value, if it exists; return once it is removed from the file.

        Its namespace ends with its last value, except for that of ordered topics: the empty table
        says to brokers that none is ordered.

        Raises:
            DiskError: the file cannot be written.
        """
        values = self._table.get(namespace, {})
        old = values.pop(key, None)
        if not values and namespace != ORDERED_TOPICS:
            self._table.pop(namespace, None)
        if old is not None:
            self._disown(namespace, key, old)
            self._count -= 1
            self._size -= _size(namespace, key, old)
            _log.info("KV %s/%s is removed", namespace, key)
        await self._write()

    def _disown(self, namespace: str, key: str, value: str | None) -> None:
        """Count a value no longer to the client that set it."""
        owner = self._owners.pop((namespace, key), None)
        if owner is not None:
            self._counts[owner] -= 1
            self._sizes[owner] -= _size(namespace, key, value)
            if not self._counts[owner]:
                del self._counts[owner], self._sizes[owner]

    async def _write(self) -> None:
        """Return once the file has all changes so far; callers that wait share one write."""
        self._changes += 1
        wanted = self._changes
        if not self._path:
            return
        async with self._writing:
            if self._written >= wanted:
                return
            written = self._changes
            table = {namespace: dict(values) for namespace, values in self._table.items()}
            await asyncio.to_thread(_keep_table, self._path, table)
            self._written = written


def _keep_table(name: str, table: dict[str, dict[str, str]]) -> None:
    keep(name, fastjson.dumps({"configTable": table}).encode())


def _size(namespace: str, key: str, value: str | None) -> int:
    return 0 if value is None else len(namespace) + len(key) + len(value)


def keep(name: str, data: bytes) -> None:
    """Replace the content of a file atomically, creating its directory if missing.

    Raises:
        DiskError: the system refused an operation.
    """
    path = Path(name).expanduser()
    replace_file(LocalOwnedDirectory.make(path.parent), path.name, data)
