"""A small table of the broker's in `config/`, written whole when it has changed.

Upstream: `ConfigManager`, for `ConsumerOrderInfoManager` and `MessageRequestModeManager`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Generic, TypeVar

import msgspec

from mqlake.broker.parts import Parts
from mqlake.errors import MqlakeError
from mqlake.formats import fastjson
from mqlake.formats.config import Config, load
from mqlake.storage.durable import make_directories, replace_file
from mqlake.storage.read_file import read_file

C = TypeVar("C", bound=Config)

_DIRECTORY = "config"
_INTERVAL = 5.0

_log = logging.getLogger(__name__)


class KeptTable(Generic[C]):
    """One table: found at the start, written a few seconds after each change and at the stop.

    Attributes:
        found: what the file held at the start.

    Args:
        make: makes what the file is to hold.

    Raises:
        FormatError: the file and its backup are both damaged.
    """

    def __init__(self, parts: Parts, kind: type[C], make: Callable[[], C]) -> None:
        self._directory = parts.store.core.directory
        self._path = f"{_DIRECTORY}/{kind.file_name}"
        self.found: C = load(self._read, kind) or kind()
        self._make = make
        self._changed = False
        self._writing: asyncio.Task[None] | None = None
        parts.repeating.every(_INTERVAL, self._write_if_changed)
        parts.on_stop.append(self._write_last)

    def change(self) -> None:
        """Let the file be written soon."""
        self._changed = True

    def _read(self, name: str) -> bytes | None:
        return read_file(self._directory, f"{_DIRECTORY}/{name}")

    def _write_if_changed(self) -> None:
        if self._changed and (self._writing is None or self._writing.done()):
            self._changed = False
            self._writing = asyncio.ensure_future(asyncio.to_thread(self._write, self._data()))

    async def _write_last(self) -> None:
        if self._writing is not None:
            await self._writing
        if self._changed:
            self._changed = False
            await asyncio.to_thread(self._write, self._data())

    def _data(self) -> bytes:
        return fastjson.dumps(msgspec.to_builtins(self._make())).encode("utf-8", "replace")

    def _write(self, data: bytes) -> None:
        try:
            make_directories(self._directory, _DIRECTORY)
            replace_file(self._directory, self._path, data, backup=f"{self._path}.bak")
        except MqlakeError as error:
            self._changed = True
            _log.warning("%s was not written, and will be tried again: %s", self._path, error)
