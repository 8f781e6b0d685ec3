"""Requests to handlers, and what becomes of what they return or raise."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from inspect import iscoroutine
from typing import Any, Final

from mqlake.errors import FormatError, MqlakeError
from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.command import ONEWAY, Command, response
from mqlake.protocol.errors import RemotingError
from mqlake.remoting.connection import Peer
from mqlake.remoting.errors import ConnectionFailedError, RequestTimeoutError
from mqlake.remoting.limits import Limits

_log: Final = logging.getLogger("mqlake.remoting")

_OTHERS_FAULTS: Final = (FormatError, ConnectionFailedError, RequestTimeoutError)
"""What is wrong with a request, or with somebody else who was asked because of it."""

Answer = Command | bytes | None
Handler = Callable[[Peer, Command], Answer | Coroutine[Any, Any, Answer]]
"""What serves requests of one code.

A command that it returns, or its frame, is the answer. After None, a request that wants an answer
waits for `Peer.answer`. A coroutine runs as a task and returns one of these.
"""


class Dispatcher:
    """Calls the handler of a request's code, and answers for it when it fails."""

    def __init__(self, handlers: Mapping[int, Handler], limits: Limits) -> None:
        self._handlers = {int(code): handler for code, handler in handlers.items()}
        self._in_flight, self._bodies = limits.in_flight, limits.bodies
        self._tasks: set[asyncio.Task[None]] = set()

    def __call__(self, peer: Peer, request: Command) -> None:
        """Serve a request."""
        if peer.in_flight >= self._in_flight or peer.bodies > self._bodies:
            _refuse(peer, request)
            return
        handler = self._handlers.get(request.code)
        if handler is None:
            _answer(peer, request, _not_supported(request))
            return
        if not request.flag & ONEWAY:
            peer.in_flight += 1
            peer.bodies += len(request.body)
        try:
            answer = handler(peer, request)
        except Exception as error:  # noqa: BLE001 (whatever a handler raises is its answer)
            answer = _failed(peer, request, error)
        if answer is None:
            return
        if isinstance(answer, (Command, bytes)):
            peer.answer(request, answer)
        elif iscoroutine(answer):
            if request.flag & ONEWAY:
                peer.in_flight += 1
                peer.bodies += len(request.body)
            task = asyncio.ensure_future(_finish(peer, request, answer, len(request.body)))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def stop(self, grace: float) -> None:
        """Wait for the tasks that run, at most `grace` seconds, then cancel them."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=grace)
        for task in list(self._tasks):
            task.cancel()


async def _finish(
    peer: Peer, request: Command, coroutine: Coroutine[Any, Any, Answer], body: int
) -> None:
    try:
        answer = await coroutine
    except Exception as error:  # noqa: BLE001 (whatever a handler raises is its answer)
        answer = _failed(peer, request, error)
    if request.is_oneway:
        peer.in_flight -= 1
        peer.bodies -= body  # the request may have lost its body since
    elif answer is not None:
        peer.answer(request, answer)


def _answer(peer: Peer, request: Command, answer: Command) -> None:
    if not request.is_oneway:
        peer.send(answer)


def _failed(peer: Peer, request: Command, error: Exception) -> Command:
    """Return the answer to a request whose handler failed.

    What the handler says on purpose is told to the client only; an accident is logged too.
    """
    if isinstance(error, RemotingError):
        return response(request, error.code, remark=error.remark)
    if isinstance(error, _OTHERS_FAULTS):
        return response(request, ResponseCode.SYSTEM_ERROR, remark=str(error))
    if isinstance(error, MqlakeError):
        _log.error("%s: request %d: %s", peer.address, request.code, error)
        return response(request, ResponseCode.SYSTEM_ERROR, remark=str(error))
    _log.error("%s: request %d failed", peer.address, request.code, exc_info=error)
    remark = f"{type(error).__name__}: {error}"
    return response(request, ResponseCode.SYSTEM_ERROR, remark=remark)


def _not_supported(request: Command) -> Command:
    # upstream's words, leading blank included: scripts look for them
    remark = f" request type {request.code} not supported"
    return response(request, ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark=remark)


def _refuse(peer: Peer, request: Command) -> None:
    waiting = f"{peer.in_flight} requests of this connection, {peer.bodies} bytes, wait"
    # clients of 4.9 give up upon SYSTEM_BUSY; upon this those of all releases send again
    answer = response(
        request, ResponseCode.SERVICE_NOT_AVAILABLE, remark=f"[TOO_MANY_IN_FLIGHT]{waiting}"
    )
    _answer(peer, request, answer)
