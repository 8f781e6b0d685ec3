"""A slave's question to its master about the log, before it follows it.

The replication protocol has no such question (docs/formats/replication.md): a master that has
nothing at the requested offset sends heartbeats, whatever the reason.
"""

from __future__ import annotations

from typing import NamedTuple

from mqlake.errors import MqlakeError
from mqlake.protocol.bodies.route import KVTable
from mqlake.protocol.body import decode_body
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import request
from mqlake.remoting.client import RemotingClient


class MasterLog(NamedTuple):
    """The physical offsets of a master's log: its first byte, and after its last."""

    start: int
    end: int


async def ask(client: RemotingClient, address: str) -> MasterLog:
    """Return where a master's log begins and ends.

    Raises:
        MqlakeError: the master does not answer, or the answer lacks the offsets.
    """
    answer = await client.call(address, request(RequestCode.GET_BROKER_RUNTIME_INFO))
    table = decode_body(KVTable, answer.body).table
    try:
        start, end = (int(table[name]) for name in ("commitLogMinOffset", "commitLogMaxOffset"))
    except (KeyError, ValueError) as error:
        raise MqlakeError(f"{address}: its runtime information lacks {error}") from error
    start = max(start, 0)  # RocketMQ's broker returns -1 for an empty log.
    if not 0 <= start <= end:
        raise MqlakeError(f"{address}: its log is said to be [{start}, {end})")
    return MasterLog(start, end)
