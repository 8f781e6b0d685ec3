"""Make a change of a table durable before it is reported as made."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

from mqlake.errors import DiskError, StoreError
from mqlake.store.config.config_file import ConfigWrite
from mqlake.store.services import Job


class DurableTable(Protocol):
    """A table whose changes are acknowledged once they are durable."""

    @property
    def changes(self) -> int:
        """Count the changes since the start."""
        ...

    def is_kept(self, changes: int) -> bool:
        """Return whether the first changes, so many of them, are durable."""
        ...

    def write(self) -> ConfigWrite | None:
        """Return a job that writes the file, None if it is up to date."""
        ...


class Keeping:
    """Writes tables for callers that wait for it; several that wait at the same time share a write.

    Args:
        run: runs a job in another thread.
    """

    def __init__(self, run: Callable[[Job], Awaitable[None]]) -> None:
        self._run = run
        self._turns: dict[DurableTable, asyncio.Lock] = {}
        self._has_ended = False

    async def keep(self, table: DurableTable) -> None:
        """Return once the current content of a table, or a newer one, is durable.

        Raises:
            StoreError: the disk refused it, or the store is being closed. The table's service, or
                the close, tries again.
        """
        changes, failure = table.changes, None
        async with self._turns.setdefault(table, asyncio.Lock()):
            is_wanted = not self._has_ended and not table.is_kept(changes)
            if is_wanted and (pending := table.write()) is not None:
                try:
                    await self._run(pending)
                except DiskError as error:
                    failure = error
                else:
                    failure = pending.failure
            if not table.is_kept(changes):
                reason = failure or "the store is being closed"
                raise StoreError(f"the change is made, but is not durable: {reason}") from failure

    async def end(self) -> None:
        """Stop writing; return once the current write is durable."""
        self._has_ended = True
        for turn in self._turns.values():
            async with turn:
                pass
