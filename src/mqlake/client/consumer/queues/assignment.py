"""Ask a broker which queues a consumer owns (upstream: `MQClientInstance.queryAssignment`)."""

from __future__ import annotations

from collections.abc import Sequence

from mqlake.client.cluster import MASTER
from mqlake.client.errors import NoRouteError
from mqlake.client.instance import ClientInstance
from mqlake.errors import MqlakeError
from mqlake.protocol.bodies.pop import Assignment, AssignmentQuery, Assignments
from mqlake.protocol.body import decode_answer, encode_body
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.errors import RemotingError

_TIMEOUT = 3.0


class AssignmentUnsupportedError(MqlakeError):
    """The brokers do not assign queues: their release is older than 5."""


async def assignments_of(
    instance: ClientInstance, topic: str, group: str, strategy: str
) -> Sequence[Assignment] | None:
    """Return a consumer's queues of a topic; None if the consumer is to keep those that it has.

    Args:
        strategy: a name in `protocol.strategies.STRATEGIES`.

    Raises:
        AssignmentUnsupportedError: a broker does not know the request.
        MqlakeError: no broker of the topic answers.
    """
    query = AssignmentQuery(topic, group, instance.client_id, strategy)
    route = await instance.routes.of(topic)
    failure: MqlakeError = NoRouteError(f"topic {topic}: none of its brokers has a master now")
    for _, addresses in sorted(route.addresses.items()):
        if MASTER not in addresses:
            continue
        try:
            answer = await instance.cluster.ask(
                addresses[MASTER], RequestCode.QUERY_ASSIGNMENT, None, encode_body(query), _TIMEOUT
            )
            return decode_answer(Assignments, answer.body).message_queue_assignments
        except RemotingError as error:
            if error.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
                raise AssignmentUnsupportedError(str(error)) from None
            failure = error
        except MqlakeError as error:
            failure = error
    raise failure
