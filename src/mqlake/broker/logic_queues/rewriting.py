"""Requests for logic queues as requests for queues of this broker."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, cast

from mqlake.protocol.command import Command
from mqlake.protocol.frames import decode
from mqlake.protocol.header import Header
from mqlake.remoting.connection import Peer
from mqlake.remoting.rewritten import Rewritten
from mqlake.remoting.route import Answer, Handler


def serve_rewritten(
    peer: Peer,
    request: Command,
    header: Header,
    restore: Callable[[Command], Command],
    serve: Handler,
) -> Answer | Coroutine[Any, Any, Answer]:
    """Return the answer to a request that is served with another header.

    Args:
        restore: returns the answer to the request, for the answer to the other one.
    """
    rewritten = Rewritten(
        request.code,
        request.opaque,
        request.flag,
        language=request.language,
        version=request.version,
        raw_fields=cast("Any", header),
        body=request.body,
        serialization=request.serialization,
        restore=lambda answer: restore(_decoded(answer)),
    )
    answer = serve(peer, rewritten)
    if answer is None:
        return None
    if isinstance(answer, Command | bytes):
        return rewritten.restore(answer)
    return _restored(answer, rewritten)


async def _restored(answer: Coroutine[Any, Any, Answer], request: Rewritten) -> Answer:
    found = await answer
    return None if found is None else request.restore(found)


def _decoded(answer: Command | bytes) -> Command:
    return decode(answer) if isinstance(answer, bytes) else answer
