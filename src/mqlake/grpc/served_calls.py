"""The calls of one connection."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any, Final

from mqlake.grpc.call import Call
from mqlake.grpc.headers_of_call import CallHeaders, timeout_of
from mqlake.grpc.http2.frames import ErrorCode
from mqlake.grpc.http2.frequency import Frequency
from mqlake.grpc.outlet import Outlet
from mqlake.grpc.served_call import ServedCall
from mqlake.grpc.server_state import ServerState
from mqlake.grpc.status import GrpcError, GrpcStatus

_TURN: Final = 0.002
"""Seconds of one round of the loop in which calls are cancelled."""


class ServedCalls:
    """Begins the calls of one connection, finds them by their streams, and forgets them.

    Args:
        state: what the connections of the server share.
        outlet: what the connection sends.
        resets: counts the calls that the client resets: each answered call allows one.
        ends: returns "ip:port" of the client and what it is connected to; a proxy may name the
            client later than the connection is opened.
        emptied: called when the last open call has ended.

    Attributes:
        by_stream: the open calls.
        last: the loop time at which a call began, or the last one ended.
    """

    def __init__(
        self,
        state: ServerState[Any],
        outlet: Outlet,
        resets: Frequency,
        ends: Callable[[], tuple[str, str]],
        emptied: Callable[[], object],
    ) -> None:
        self._state, self._outlet, self._resets = state, outlet, resets
        self._ends, self._emptied = ends, emptied
        self.by_stream: dict[int, ServedCall] = {}
        self.last = 0.0

    @property
    def count(self) -> int:
        """Return how many calls are served, with those whose handlers have yet to notice that they
        are cancelled.
        """
        return len(self.by_stream) + self._outlet.lingering

    @property
    def has_short(self) -> bool:
        """Return whether calls are served that end by themselves."""
        return any(not served.is_endless for served in self.by_stream.values())

    def note_begun(self, now: float) -> None:
        """Note that the client begins a call, which may yet be refused, or that it connects."""
        self.last = now

    def begin(self, number: int, fields: dict[str, str], size: int, now: float) -> ServedCall:
        """Begin a call.

        Args:
            number: its stream.
            fields: its headers.
            size: bytes of its headers.
            now: the loop time.

        Raises:
            CallRefusedError: the headers are not those of a call of gRPC.
            GrpcError: there is no such method.
        """
        found = CallHeaders(fields)
        timeout = timeout_of(fields)
        state = self._state
        method = state.methods.get(found.path)
        if method is None:
            text = f"there is no method {found.path[:200]}"
            raise GrpcError(GrpcStatus.UNIMPLEMENTED, text)
        peer, local = self._ends()
        call = Call(
            method.name,
            fields,
            peer=peer,
            local=local,
            authority=found.authority,
            deadline=None if timeout is None else now + timeout,
            now=state.loop.time,
        )
        served = ServedCall(self._outlet, number, method, call, self._forget)
        self.by_stream[number] = served
        if call.deadline is not None:
            state.note_deadline(served, call.deadline)
        served.begin(now, size)
        return served

    def _forget(self, served: ServedCall) -> None:
        """Forget a call that has ended."""
        if self.by_stream.pop(served.output.number, None) is None:
            return
        self._outlet.windows.drop(served.output)
        if served.is_answered:
            self._resets.allow(1)
        if served.call.deadline is not None:
            self._state.forget_deadline(served, served.call.deadline)
        if not self.by_stream:
            self.last = self._state.loop.time()
            self._emptied()

    def note_moved(self, numbers: list[int]) -> None:
        """Let calls continue that waited until something was sent on their streams."""
        for number in numbers:
            served = self.by_stream.get(number)
            if served is not None:
                served.note_moved()

    def note_all_moved(self) -> None:
        """Let all calls continue that waited until the client reads."""
        for served in list(self.by_stream.values()):
            served.note_moved()

    def reset_stuck(self, before: float) -> None:
        """Reset the calls that have not progressed since a loop time."""
        for served in list(self.by_stream.values()):
            if served.is_stuck(before):
                served.reset(ErrorCode.CANCEL)

    def end_all(self) -> None:
        """End all calls: the server stops."""
        for served in list(self.by_stream.values()):
            served.end(GrpcStatus.UNAVAILABLE, "the server stops")

    def cancel_all(self) -> None:
        """Cancel all calls, some in each round of the loop."""
        until = perf_counter() + _TURN
        while self.by_stream:
            next(iter(self.by_stream.values())).cancel()
            if perf_counter() >= until:
                self._state.loop.call_soon(self.cancel_all)
                return
