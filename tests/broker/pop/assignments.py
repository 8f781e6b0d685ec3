"""Assignments of queues, as a client asks for them."""

from __future__ import annotations

from mqlake.protocol.bodies.pop import AssignmentQuery, Assignments
from mqlake.protocol.body import decode_body, encode_body
from mqlake.protocol.codes import RequestCode, ResponseCode
from tests.broker.pop.popping import TOPIC
from tests.broker.running import Running

GROUP = "group"


async def ask(
    broker: Running, client: str, topic: str = TOPIC, **fields: str
) -> list[tuple[int, str]] | None:
    query = AssignmentQuery(topic, GROUP, client, **fields)
    answer = await broker.ask(RequestCode.QUERY_ASSIGNMENT, None, encode_body(query))
    assert answer.code == ResponseCode.SUCCESS
    found = decode_body(Assignments, answer.body).message_queue_assignments
    if found is None:
        return None
    return sorted((each.message_queue.queue_id, each.mode) for each in found)
