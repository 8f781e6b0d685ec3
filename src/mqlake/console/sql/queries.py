"""Run queries in processes of their own, few at the same time, each with its limits."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Hashable

import msgspec

from mqlake.console.sql.statement import LONGEST, SqlLimits, SqlResult, SqlStatement
from mqlake.errors import MqlakeError

_AT_ONCE = 2
_PARQUET = b"PAR1"


class SqlQueries:
    """Runs queries: one for each visitor, and two in all. For one event loop.

    Attributes:
        limits: of each query.
    """

    def __init__(self, limits: SqlLimits | None = None) -> None:
        self.limits = limits or SqlLimits()
        self._running: dict[Hashable, Process | None] = {}

    async def table(self, visitor: Hashable, sql: str, store: str, table: str | None) -> SqlResult:
        """Run a query; the result has the first rows, or the reason of the failure.

        Args:
            visitor: who asks: a user, or the session of somebody without a login.
            store, table: the store directory and the lake table of the view `messages`.

        Raises:
            MqlakeError: other queries are running, or the statement is too long.
        """
        data = await self._run(visitor, SqlStatement(sql, store, table, False, self.limits))
        if isinstance(data, SqlResult):
            return data
        try:
            return await asyncio.to_thread(msgspec.json.decode, data, type=SqlResult)
        except msgspec.DecodeError:
            return SqlResult(error="the process of the query ended without a result")

    async def parquet(self, visitor: Hashable, sql: str, store: str, table: str | None) -> bytes:
        """Run a query; return its result as a Parquet file.

        Raises:
            MqlakeError: as for `table`, or the query failed.
        """
        limits = self.limits.for_parquet()
        data = await self._run(visitor, SqlStatement(sql, store, table, True, limits))
        if isinstance(data, SqlResult):
            raise MqlakeError(data.error or "no result")
        if data.startswith(_PARQUET):
            return data
        try:
            found = msgspec.json.decode(data, type=SqlResult)
        except msgspec.DecodeError:
            found = SqlResult()
        raise MqlakeError(found.error or "the process of the query ended without a result")

    @property
    def are_started(self) -> bool:
        """Whether all queries that were asked for have a process."""
        return None not in self._running.values()

    async def close(self) -> None:
        """Kill the queries that run."""
        for process in list(self._running.values()):
            if process is not None:
                await _kill(process)

    async def _run(self, visitor: Hashable, statement: SqlStatement) -> bytes | SqlResult:
        if len(statement.sql) > LONGEST:
            raise MqlakeError(f"the statement has more than {LONGEST} characters")
        if visitor in self._running:
            raise MqlakeError("your last query is still running: wait until it ends")
        if len(self._running) >= _AT_ONCE:
            raise MqlakeError("other visitors' queries are running: try again in a moment")
        self._running[visitor] = None
        try:
            return await self._work(visitor, statement)
        finally:
            del self._running[visitor]

    async def _work(self, visitor: Hashable, statement: SqlStatement) -> bytes | SqlResult:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "mqlake.console.sql.process", str(os.getpid()),
            stdin=PIPE, stdout=PIPE, stderr=DEVNULL, start_new_session=True,
        )  # fmt: skip
        self._running[visitor] = process
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, process.pid, 15)
        limits = statement.limits
        try:
            async with asyncio.timeout(limits.seconds):
                data, _ = await process.communicate(msgspec.json.encode(statement))
        except TimeoutError:
            return SqlResult(
                error=f"the query was stopped after {limits.seconds:g} seconds: add a condition on "
                "topic, storeTimestamp or queueOffset, which limit what is read"
            )
        finally:
            await _kill(process)
        if process.returncode:
            return SqlResult(
                error=f"the process of the query ended with code {process.returncode}: it needs "
                "too much memory, or somebody stopped it"
            )
        return data


async def _kill(process: Process) -> None:
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
