"""Connect again and again, send what no client should send, and count what was wrong."""

from __future__ import annotations

import asyncio
import logging
import random
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from mqlake.grpc.connection import GrpcConnection
from mqlake.grpc.http2 import frames
from mqlake.grpc.limits import GrpcLimits
from mqlake.grpc.messages import SendMessageRequest
from mqlake.grpc.server_state import ServerState
from tests.grpc.abuse.kinds import KINDS
from tests.grpc.raw_client import call
from tests.grpc.serving import METHODS

_HONEST = 20
"""One honest client in so many others."""
_LONGEST = 0.5
"""CPU seconds of one read: an honest client waits as long."""
_LIMITS = GrpcLimits(message=100_000, resets=1000, idle_frames=1000, calls=8)
_TYPES = range(10)
_SERVED = b"grpc-status\x010"


@dataclass
class Outcome:
    """What happened.

    Attributes:
        counts: clients by kind.
        ends: how connections ended: the code of the server's farewell, or that it had none.
        honest: honest clients, all of which must be served.
        longest: the CPU seconds of the read that took the longest.
    """

    counts: Counter[str] = field(default_factory=Counter[str])
    ends: Counter[str] = field(default_factory=Counter[str])
    honest: int = 0
    longest: float = 0.0
    violations: list[str] = field(default_factory=list[str])


class Socket(asyncio.Transport):
    """A transport without a network; it keeps what the server writes."""

    def __init__(self, protocol: GrpcConnection) -> None:
        super().__init__()
        self.protocol, self.written = protocol, bytearray()
        self.is_over = self.is_paused = False

    def write(self, data: Any) -> None:
        self.written += data

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return ("127.0.0.1", 1) if name in ("peername", "sockname") else default

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None:
        self.is_paused = True

    def resume_reading(self) -> None:
        self.is_paused = False

    def is_closing(self) -> bool:
        return self.is_over

    def close(self) -> None:
        if not self.is_over:
            self.is_over = True
            self.protocol.connection_lost(None)

    abort = close


class Faults(logging.Handler):
    """Keeps what the server logs as errors: nothing that a client sends may lead to that."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        text = "".join(traceback.format_exception(error)) if error else ""
        self.found.append(f"{record.getMessage()} {text}")


class Target:
    """The connections of one server."""

    def __init__(self, outcome: Outcome, faults: Faults) -> None:
        self.outcome, self.faults = outcome, faults
        loop = asyncio.get_running_loop()
        methods = {method.path: method for method in METHODS}
        self.state = ServerState[GrpcConnection](loop, _LIMITS, methods, None)
        loop.set_exception_handler(self._note)

    def _note(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        text = "".join(traceback.format_exception(error)) if error else ""
        self.faults.found.append(f"{context.get('message')} {text}")

    async def client(
        self, data: bytes, chance: random.Random, *, until: bytes | None = None
    ) -> bytes:
        """Send this in pieces of any size, and leave; return what the server wrote.

        Args:
            until: what must have been written before; None to leave at any moment.
        """
        connection = GrpcConnection(self.state)
        transport = Socket(connection)
        connection.connection_made(transport)
        at = 0
        while at < len(data) and not transport.is_over:
            size = chance.choice((len(data), 10_000, 1000, 100, 7))
            at += self._receive(connection, data[at : at + size])
            if chance.random() < 0.3:
                await asyncio.sleep(0)  # Handlers run.
            while transport.is_paused and not transport.is_over:  # noqa: ASYNC110 (as above)
                await asyncio.sleep(0)
        for _ in range(chance.choice((0, 1, 3, 100)) if until is None else 1000):
            if transport.is_over or (until is not None and until in transport.written):
                break
            await asyncio.sleep(0)
        transport.close()
        for _ in range(6):  # Handlers notice that they are cancelled.
            await asyncio.sleep(0)
        if self.state.budget.used or connection.calls or self.state.connections:
            self.faults.found.append(
                f"{self.state.budget.used} bytes and {connection.calls} calls are left"
            )
        return bytes(transport.written)

    def _receive(self, connection: GrpcConnection, data: bytes) -> int:
        """Let a connection receive the beginning of this; return how many bytes that were."""
        room = connection.get_buffer(-1)
        size = min(len(data), len(room))
        room[:size] = data[:size]
        begin = time.thread_time()
        connection.buffer_updated(size)
        self.outcome.longest = max(self.outcome.longest, time.thread_time() - begin)
        return size

    async def one(self, kind: str, seed: int) -> str:
        """Return what was wrong with one client."""
        chance = random.Random(seed)
        sent = frames.PREFACE + KINDS[kind](chance)
        if kind == "aborted":
            sent = sent[: chance.randrange(len(sent) + 1)]
        written = await self.client(sent, chance)
        end, wrong = look(written)
        self.outcome.ends[end] += 1
        return wrong

    async def honest(self) -> str:
        """Return what was wrong with an honest client."""
        sent = frames.PREFACE + frames.settings({}) + call(1, "SendMessage", SendMessageRequest())
        written = await self.client(sent, random.Random(0), until=_SERVED)
        return "" if _SERVED in written else "an honest client was not served"


def look(written: bytes) -> tuple[str, str]:
    """Return how the connection ended, and what is wrong with what the server wrote."""
    at, end = 0, "without a farewell"
    while at < len(written):
        if len(written) - at < frames.HEAD.size:
            return end, "half a frame"
        start, _, stream = frames.HEAD.unpack_from(written, at)
        size, kind = start >> 8, start & 0xFF
        if kind not in _TYPES or size > 1 << 16 or at + 9 + size > len(written):
            return end, f"a frame of type {kind} with {size} bytes"
        is_general = kind in (frames.SETTINGS, frames.PING, frames.GOAWAY)
        if (stream == 0) != is_general and kind != frames.WINDOW_UPDATE:
            return end, f"a frame of type {kind} on stream {stream}"
        if end != "without a farewell":
            return end, "a frame after the farewell"
        if kind == frames.GOAWAY:
            code = int.from_bytes(written[at + 13 : at + 17])
            end = frames.ErrorCode(code).name
            if code == frames.ErrorCode.INTERNAL_ERROR:
                return end, "an internal error"
        at += 9 + size
    return end, ""


def run(count: int, seed: int, progress: Callable[[int], object] = lambda _: None) -> Outcome:
    """Run so many clients; each is repeated by its seed, which counts up."""
    outcome = Outcome()
    asyncio.run(_run(count, seed, progress, outcome))
    return outcome


async def _run(count: int, seed: int, progress: Callable[[int], object], outcome: Outcome) -> None:
    faults, log = Faults(), logging.getLogger("mqlake")
    propagates, log.propagate = log.propagate, False
    log.addHandler(faults)
    target, names = Target(outcome, faults), list(KINDS)
    try:
        for number in range(count):
            kind = names[(seed + number) % len(names)]
            wrong = await target.one(kind, seed + number)
            outcome.counts[kind] += 1
            if number % _HONEST == 0:
                outcome.honest += 1
                wrong = wrong or await target.honest()
            wrong = wrong or "; ".join(faults.found)
            faults.found.clear()
            if wrong:
                outcome.violations.append(f"{kind}, seed {seed + number}: {wrong}")
            if number % 10_000 == 0:
                progress(number)
    finally:
        log.removeHandler(faults)
        log.propagate = propagates
    if outcome.longest > _LONGEST:
        outcome.violations.append(f"one read took {outcome.longest:.2f} s")
