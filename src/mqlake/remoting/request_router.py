"""Pass requests to handlers, and turn their results and errors into answers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Iterable, Sequence
from inspect import iscoroutine
from time import perf_counter
from typing import Any, Final

from mqlake.errors import FormatError, MqlakeError
from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.command import ONEWAY, Command, response
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.header import Header
from mqlake.remoting.connection import Peer
from mqlake.remoting.errors import ConnectionFailedError, RequestTimeoutError
from mqlake.remoting.latencies import ONEWAY as ONEWAY_RESULT
from mqlake.remoting.latencies import Latencies, RequestKind
from mqlake.remoting.limits import Limits
from mqlake.remoting.route import Answer, Check, Route
from mqlake.remoting.stream.frame_reader import Frames, RunKind

_log: Final = logging.getLogger("mqlake.remoting")

_OTHERS_FAULTS: Final = (FormatError, ConnectionFailedError, RequestTimeoutError)
"""An error of the request, or of another peer that was asked because of it."""


class _RouteUse:
    """A route, and how many requests it has served.

    Attributes:
        kind: that of its requests that succeed at once.
        times: their durations, if these are measured.
    """

    __slots__ = ("count", "kind", "route", "times")

    def __init__(self, route: Route, latencies: Latencies | None) -> None:
        self.route, self.count, self.kind = route, 0, RequestKind(int(route.code))
        self.times = latencies.of(self.kind) if latencies is not None else None

    def note(self, latencies: Latencies, begin: float, count: int, address: str) -> None:
        """Note requests that were served since a time of `perf_counter`, in one call."""
        assert self.times is not None
        latencies.add_to(self.times, self.kind, perf_counter() - begin, count, address)


class RequestRouter:
    """The single entry point: every request, and every run, passes here to its route.

    Args:
        routes: one for each request code.
        limits: a connection with more waiting requests is answered as busy.
        checks: called in this order before a route serves a request or a run.
        latencies: measures requests; None if that is not wanted.

    Attributes:
        refused: requests that were refused because too many of their connection waited.
    """

    def __init__(
        self,
        routes: Iterable[Route],
        limits: Limits,
        checks: Sequence[Check] = (),
        latencies: Latencies | None = None,
    ) -> None:
        self.latencies, self.refused = latencies, 0
        self._served = {int(route.code): _RouteUse(route, latencies) for route in routes}
        self._checks = tuple(checks)
        self._in_flight, self._bodies = limits.in_flight, limits.bodies
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def headers(self) -> dict[int, type[Header]]:
        """Header types that are decoded together with their frames, by request code."""
        found = {code: served.route.header for code, served in self._served.items()}
        return {code: header for code, header in found.items() if header is not None}

    @property
    def runs(self) -> frozenset[RunKind]:
        """Which frames may be served many in one call."""
        return frozenset(
            (int(kind), code)
            for code, served in self._served.items()
            if served.route.run
            for kind in served.route.run_kinds
        )

    @property
    def counts(self) -> dict[int, int]:
        """The number of served requests, without refused ones, by request code."""
        return {code: served.count for code, served in self._served.items()}

    def note_served(self, code: int, took: float, count: int) -> None:
        """Count requests that were served elsewhere, with success.

        Args:
            took: seconds in which these requests were served together.
        """
        served = self._served[code]
        served.count += count
        if served.times is not None:
            served.times.add(took * 1000, count)

    def note_answered(
        self, code: int, response_code: int, took: float, count: int, address: str
    ) -> None:
        """Count requests that waited elsewhere, and were answered so.

        Args:
            took: seconds that they waited.
            address: of the client.
        """
        self._served[code].count += count
        if self.latencies is not None:
            self.latencies.add(RequestKind(code, response_code), took, count, address)

    def __call__(self, peer: Peer, request: Command) -> None:
        """Serve a request."""
        if peer.in_flight >= self._in_flight or peer.bodies > self._bodies:
            self.refused += 1
            _refuse(peer, request)
            return
        served = self._served.get(request.code)
        if served is None:
            _answer(peer, request, _not_supported(request))
            return
        if peer.started is not None:
            peer.started[request.opaque] = perf_counter()
        if not request.flag & ONEWAY:
            peer.wait(1, len(request.body))
        try:
            for check in self._checks:
                check(peer, request, served.route)
            served.count += 1
            answer = served.route.handler(peer, request)
        except Exception as error:  # noqa: BLE001 (whatever is raised is the answer)
            answer = _failed(peer, request, error)
        if request.flag & ONEWAY and not iscoroutine(answer):
            peer.note_answer(request, answer, ONEWAY_RESULT)
        if answer is None:
            return
        if isinstance(answer, (Command, bytes)):
            peer.answer(request, answer)
        elif iscoroutine(answer):
            if request.flag & ONEWAY:
                peer.wait(1, len(request.body))
            task = asyncio.ensure_future(self._finish(peer, request, answer, len(request.body)))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def take_run(self, peer: Peer, frames: Frames) -> None:
        """Serve the first of these frames at once, as many as their route accepts.

        Frames that would be refused are left, and are then refused one by one.
        """
        served = self._served[frames.code]
        take = served.route.run
        if take is None or peer.usages:
            return
        if peer.in_flight >= self._in_flight or peer.bodies > self._bodies:
            return
        checks = self._checks if served.route.run_checks is None else served.route.run_checks
        try:
            for check in checks:
                check(peer, frames.first, served.route)
        except Exception:  # noqa: BLE001 (whatever it is, the frame by itself gets it as its answer)
            return
        latencies, waiting, begin = self.latencies, peer.in_flight, perf_counter()
        count = take(peer, frames)
        served.count += count
        # If more requests wait than before, these are answered later.
        if count and latencies is not None and peer.in_flight == waiting:
            served.note(latencies, begin, count, peer.address)

    async def _finish(
        self, peer: Peer, request: Command, coroutine: Coroutine[Any, Any, Answer], body: int
    ) -> None:
        try:
            answer = await coroutine
        except Exception as error:  # noqa: BLE001 (whatever a handler raises is its answer)
            answer = _failed(peer, request, error)
        if request.is_oneway:
            peer.wait(-1, -body)  # The request may have lost its body since.
            peer.note_answer(request, answer, ONEWAY_RESULT)
        elif answer is not None:
            peer.answer(request, answer)

    async def stop(self, grace: float) -> None:
        """Wait for the running tasks, at most `grace` seconds, then cancel them."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=grace)
        for task in list(self._tasks):
            task.cancel()


def _answer(peer: Peer, request: Command, answer: Command) -> None:
    if not request.is_oneway:
        peer.send(answer)


def _failed(peer: Peer, request: Command, error: Exception) -> Command:
    """Return the answer to a request whose handler failed.

    Errors that the handler raises on purpose are only answered to the client; unexpected ones are
    logged, too.
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
    # These are upstream's words, including the leading blank: scripts search for them.
    remark = f" request type {request.code} not supported"
    return response(request, ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark=remark)


def _refuse(peer: Peer, request: Command) -> None:
    waiting = f"{peer.in_flight} requests of this connection, {peer.bodies} bytes, wait"
    # Clients of 4.9 give up on SYSTEM_BUSY; on this code, clients of all releases send again.
    answer = response(
        request, ResponseCode.SERVICE_NOT_AVAILABLE, remark=f"[TOO_MANY_IN_FLIGHT]{waiting}"
    )
    _answer(peer, request, answer)
