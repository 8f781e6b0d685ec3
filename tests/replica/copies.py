"""Replicas of masters in the event loop of a test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from mqlake.errors import MqlakeError
from mqlake.protocol.codes import ResponseCode
from mqlake.replica.options import ReplicaOptions
from mqlake.replica.replica import Replica
from tests.broker.running import PATIENCE, Running, to
from tests.replication.slaves import server
from tests.until import until

BODY = b"x" * 1000


async def fill(broker: Running, count: int) -> None:
    """Send messages that are acknowledged."""
    for number in range(count):
        properties = f"KEYS\x01k{number % 10}\x02"
        answer = await broker.send(to("Orders", queue_id=number % 4, properties=properties), BODY)
        assert answer.code == ResponseCode.SUCCESS


def asked(
    master: Running,
    store: Path,
    *,
    ha_address: str = "",
    keep_bytes: int | None = None,
    is_counted: bool = False,
    is_patient: bool = True,
) -> ReplicaOptions:
    """Return the options of a replica of a master of this process."""
    return ReplicaOptions(
        master=master.address,
        store=store,
        ha_address=ha_address or server(master).address,
        keep_bytes=keep_bytes,
        is_counted=is_counted,
        is_patient=is_patient,
    )


@asynccontextmanager
async def copying(
    options: ReplicaOptions, held: Callable[[], int] | None = None
) -> AsyncIterator[Replica]:
    async with Replica(options, held) as replica:
        yield replica


async def has_all(replica: Replica, master: Running) -> None:
    """Wait until a replica has all of its master."""
    end = master.state.store.watermarks.end
    await until(lambda: replica.failed.done() or replica.status().max_offset == end)
    if replica.failed.done():
        raise replica.failed.result()


async def failure(replica: Replica) -> MqlakeError:
    """Return why a replica cannot go on."""
    async with asyncio.timeout(PATIENCE):
        return await replica.failed


async def problem(replica: Replica, words: str) -> None:
    """Wait until a replica says why it does not follow."""
    await until(lambda: words in (replica.status().problem or ""))
