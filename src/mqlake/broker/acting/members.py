"""The brokers of one name, as the name servers know them.

Upstream: `BrokerOuterAPI.getBrokerMemberGroup`.
"""

from __future__ import annotations

from typing import Final

from mqlake.broker.settings import BrokerSettings
from mqlake.client.cluster import Cluster
from mqlake.errors import MqlakeError
from mqlake.protocol.bodies.route import BrokerMemberGroupBody
from mqlake.protocol.body import decode_answer
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.headers.namesrv import GetBrokerMemberGroupHeader

_SECONDS: Final = 3.0
"""Seconds that each name server has to answer."""


async def members_of(cluster: Cluster, settings: BrokerSettings) -> dict[int, str]:
    """Return the addresses of a broker's name by id, from the first name server that answers.

    Raises:
        MqlakeError: no name server answers, or the answer is malformed.
    """
    header = GetBrokerMemberGroupHeader(
        cluster_name=settings.broker_cluster_name, broker_name=settings.broker_name
    )
    failure = MqlakeError("the setting namesrvAddr names no name server")
    for address in cluster.name_servers:
        try:
            code = RequestCode.GET_BROKER_MEMBER_GROUP
            answer = await cluster.ask(address, code, header, seconds=_SECONDS)
            return decode_answer(
                BrokerMemberGroupBody, answer.body
            ).broker_member_group.broker_addrs
        except MqlakeError as error:
            failure = error
    raise failure
