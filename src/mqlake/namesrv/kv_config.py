"""Values by namespace and key, kept in a file (upstream: `KVConfigManager`)."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Final

import msgspec

from mqlake.errors import FormatError, StoreError
from mqlake.formats import fastjson
from mqlake.formats.config import convert
from mqlake.storage.durable import replace_file
from mqlake.storage.local_owned import LocalOwnedDirectory

ORDERED_TOPICS: Final = "ORDER_TOPIC_CONFIG"
"""Namespace of the ordered topics: "broker:queues" of each broker, separated by `;`."""

_log: Final = logging.getLogger("mqlake.namesrv")


class _File(msgspec.Struct, rename="camel"):
    config_table: dict[str, dict[str, str]] = {}


class KvConfig:
    """A table of texts by namespace and key; a file keeps it, if there is one."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._table: dict[str, dict[str, str]] = {}
        self._writing = asyncio.Lock()

    def load(self) -> None:
        """Read the file, if there is one.

        Raises:
            StoreError: it cannot be read, or is damaged.
        """
        if not self._path:
            return
        try:
            data = Path(self._path).expanduser().read_bytes()
            self._table = convert(fastjson.loads(data), _File).config_table
        except FileNotFoundError:
            return
        except OSError as error:
            raise StoreError(f"{self._path}: {error.strerror}") from error
        except FormatError as error:
            raise StoreError(f"{self._path}: {error}; mend or remove it") from error

    def get(self, namespace: str, key: str) -> str | None:
        """Return a value, None where there is none."""
        return self._table.get(namespace, {}).get(key)

    def namespace(self, namespace: str) -> dict[str, str] | None:
        """Return all values of a namespace, None where there never was one in it."""
        return self._table.get(namespace)

    async def put(self, namespace: str, key: str, value: str) -> None:
        """Set a value; return once the file has it.

        Raises:
            DiskError: the file cannot be written; until the end of the process the value counts.
        """
        self._table.setdefault(namespace, {})[key] = value
        _log.info("KV %s/%s is %s", namespace, key, value)
        await self._write()

    async def delete(self, namespace: str, key: str) -> None:
        """Remove a value, if there is one; return once it is out of the file.

        Raises:
            DiskError: the file cannot be written.
        """
        if self._table.get(namespace, {}).pop(key, None) is not None:
            _log.info("KV %s/%s is gone", namespace, key)
        await self._write()

    async def _write(self) -> None:
        if not self._path:
            return
        async with self._writing:
            data = fastjson.dumps({"configTable": self._table}).encode()
            await asyncio.to_thread(keep, self._path, data)


def keep(name: str, data: bytes) -> None:
    """Give a file new content in one step, making its directory if there is none.

    Raises:
        DiskError: the system refused it.
    """
    path = Path(name).expanduser()
    replace_file(LocalOwnedDirectory.make(path.parent), path.name, data)
