"""A small table of the broker in `config/`, which is written as a whole when it has changed.

Upstream: `ConfigManager`, for `ConsumerOrderInfoManager` and `MessageRequestModeManager`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Generic, TypeVar

from mqlake.broker.runtime import BrokerRuntime
from mqlake.broker.state.broker_state import BrokerState
from mqlake.errors import MqlakeError, StoreError
from mqlake.formats import fastjson
from mqlake.formats.config import Config, load
from mqlake.remoting.slices import Job
from mqlake.storage.durable import make_directories, replace_file
from mqlake.storage.read_file import read_file

C = TypeVar("C", bound=Config)
Members = dict[str, object]

_DIRECTORY = "config"
_INTERVAL = 5.0

_log = logging.getLogger(__name__)


class KeptTable(Generic[C]):
    """One table: loaded at the start, written a few seconds after each change and at the stop, and
    before the deletion of what it named is answered.

    However long the table is, this blocks the event loop only briefly: the file's members are
    collected a slice at a time, and are encoded and written in another thread.

    Attributes:
        found: the content of the file at the start.

    Args:
        gather: returns the job that returns the file's members by name. The members must no longer
            change.

    Raises:
        FormatError: the file and its backup are both damaged.
    """

    def __init__(
        self,
        state: BrokerState,
        runtime: BrokerRuntime,
        kind: type[C],
        gather: Callable[[], Job[Members]],
    ) -> None:
        self._slices = runtime.slices
        self._directory = state.store.directory
        self._path = f"{_DIRECTORY}/{kind.file_name}"
        self.found: C = load(self._read, kind) or kind()
        self._gather = gather
        self._changed = False
        self._writing: asyncio.Task[None] | None = None
        self._failure: Exception | None = None
        runtime.repeating.every(_INTERVAL, self._write_if_changed)
        runtime.on_stop.append(self._write_last)
        state.endings.keep_with(self.keep)

    def change(self) -> None:
        """Let the file be written soon."""
        self._changed = True

    def _read(self, name: str) -> bytes | None:
        return read_file(self._directory, f"{_DIRECTORY}/{name}")

    def _write_if_changed(self) -> None:
        if self._changed and (self._writing is None or self._writing.done()):
            self._writing = asyncio.ensure_future(self._gather_and_write())

    async def keep(self) -> None:
        """Return once all changes until now are in the file.

        Raises:
            StoreError: the disk refuses them.
        """
        before = self._writing
        if before is not None and not before.done():
            await asyncio.shield(before)
        self._write_if_changed()
        if self._writing is not None:
            await asyncio.shield(self._writing)
        if self._failure is not None:
            raise StoreError(f"{self._path} was not written: {self._failure}")

    async def _write_last(self) -> None:
        if self._writing is not None:
            await self._writing
        if self._changed:
            await self._gather_and_write()

    async def _gather_and_write(self) -> None:
        self._changed, self._failure = False, None
        try:
            members = await self._slices.finish(self._gather())
            await asyncio.to_thread(self._write, members)
        except Exception as error:  # noqa: BLE001 (nobody waits for it: it is logged)
            self._changed, self._failure = True, error
            trace = None if isinstance(error, MqlakeError) else error
            _log.warning(
                "%s was not written, and will be tried again: %s", self._path, error, exc_info=trace
            )

    def _write(self, members: Members) -> None:
        data = fastjson.dumps(members).encode("utf-8", "replace")
        make_directories(self._directory, _DIRECTORY)
        replace_file(self._directory, self._path, data, backup=f"{self._path}.bak")
