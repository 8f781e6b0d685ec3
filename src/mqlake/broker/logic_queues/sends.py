"""Sends to logic queues.

Upstream: `SendMessageProcessor.rewriteResponseForStaticTopic`.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

import msgspec

from mqlake.broker.logic_queues.rewriting import serve_rewritten
from mqlake.broker.send.answers import STORED
from mqlake.broker.send.properties import HALF, is_half
from mqlake.broker.state.static_topics import LogicQueue
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, response
from mqlake.protocol.headers.send import SendMessageHeader, SendMessageHeaderV2
from mqlake.protocol.logic_queues.mapping import answered_offset
from mqlake.remoting.connection import Peer
from mqlake.remoting.route import Answer, Handler

_PUT = frozenset((ResponseCode.SUCCESS, *STORED.values()))


def serve_send(
    peer: Peer, request: Command, queue: LogicQueue, serve: Handler
) -> Answer | Coroutine[Any, Any, Answer]:
    """Put a message in the queue of the last stretch; answer its place in the logic queue."""
    is_v1 = request.code == RequestCode.SEND_MESSAGE
    header = request.header(SendMessageHeader if is_v1 else SendMessageHeaderV2)
    physical = msgspec.structs.replace(header, queue_id=queue.leader.queue_id)
    keeps_offset, asked = _is_half(header), request.bare()

    def restore(answer: Command) -> Command:
        if answer.code not in _PUT:
            return answer
        fields = answer.fields | {"queueId": str(queue.queue_id)}
        # The producer of a half message names this offset when it commits: it is in the half topic.
        if not keeps_offset:
            offset = answered_offset(queue.leader, int(fields["queueOffset"]))
            fields["queueOffset"] = str(offset)
        return response(asked, answer.code, fields, answer.body, answer.remark)

    return serve_rewritten(peer, request, physical, restore, serve)


def _is_half(header: SendMessageHeader | SendMessageHeaderV2) -> bool:
    properties = (header.properties or "").encode("utf-8", "replace")
    is_single = not header.batch and HALF in properties
    return is_single and is_half(properties, header.reconsume_times or 0)
