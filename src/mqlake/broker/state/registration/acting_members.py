"""The brokers of one name, as the name servers know them.

Upstream: `BrokerOuterAPI.getBrokerMemberGroup`.
"""

from __future__ import annotations

import asyncio
from typing import Final

from mqlake.broker.settings import BrokerSettings
from mqlake.client.cluster import MASTER, Cluster
from mqlake.errors import MqlakeError
from mqlake.protocol.bodies.route import BrokerMemberGroupBody
from mqlake.protocol.body import decode_answer
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.headers.namesrv import GetBrokerMemberGroupHeader

_SECONDS: Final = 3.0
"""Seconds that each name server has to answer."""


async def members_of(cluster: Cluster, settings: BrokerSettings) -> dict[int, str]:
    """Return the addresses of a broker's name by id, as all name servers together know them.

    A broker that one name server has lost may be alive at another one. If they differ about an id,
    the first one counts.

    Raises:
        MqlakeError: no name server answers, or all answers are malformed.
    """
    found = await asyncio.gather(
        *(_known_to(address, cluster, settings) for address in cluster.name_servers),
        return_exceptions=True,
    )
    tables = [each for each in found if not isinstance(each, BaseException)]
    if not tables:
        raise next(
            (each for each in found if isinstance(each, BaseException)),
            MqlakeError("the setting namesrvAddr names no name server"),
        )
    members: dict[int, str] = {}
    for table in tables:
        # Nobody acts for, or asks, a broker with an id that no broker can have.
        members |= {i: each for i, each in table.items() if i >= MASTER and i not in members}
    return members


async def _known_to(address: str, cluster: Cluster, settings: BrokerSettings) -> dict[int, str]:
    """Return the addresses of a broker's name by id, as one name server knows them."""
    header = GetBrokerMemberGroupHeader(
        cluster_name=settings.broker_cluster_name, broker_name=settings.broker_name
    )
    code = RequestCode.GET_BROKER_MEMBER_GROUP
    answer = await cluster.ask(address, code, header, seconds=_SECONDS)
    return decode_answer(BrokerMemberGroupBody, answer.body).broker_member_group.broker_addrs
