"""A slave's question to its master about the log, before it follows it.

The replication protocol has no such question (docs/formats/replication.md): a master that has
nothing at the requested offset sends heartbeats, whatever the reason.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from mqlake.errors import MqlakeError
from mqlake.protocol.bodies.route import KVTable
from mqlake.protocol.body import decode_body
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import request
from mqlake.remoting.client import RemotingClient

HAS_TLS: Final = "haTls"
"""The entry of mqlake's runtime information: "true" if the port for slaves accepts TLS."""


class MasterLog(NamedTuple):
    """A master's log, and how it is copied.

    Attributes:
        start: physical offset of its first byte.
        end: physical offset after its last byte.
        has_tls: whether the port for slaves accepts TLS. RocketMQ's does not: it would take a
            handshake for the report of a slave that has everything, and count on that slave.
    """

    start: int
    end: int
    has_tls: bool = False


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
    return MasterLog(start, end, table.get(HAS_TLS) == "true")
