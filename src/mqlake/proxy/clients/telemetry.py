"""Telemetry: the stream over which a client sends its settings, and receives commands.

Upstream: `ClientActivity`, `GrpcClientChannel`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final, TypeAlias

from mqlake.grpc.call import Call
from mqlake.grpc.messages import Code, Settings, TelemetryCommand
from mqlake.grpc.method import Method, bidirectional
from mqlake.grpc.status import GrpcError, GrpcStatus
from mqlake.proxy.brokers.port import Caller
from mqlake.proxy.clients.client import GrpcClient
from mqlake.proxy.clients.clients import GrpcClients
from mqlake.proxy.counts import CallCounts
from mqlake.proxy.errors import OK, outcome_of_error
from mqlake.proxy.gate import Gate
from mqlake.proxy.settings import ProxySettings
from mqlake.remoting.shares import Shares, owner_of

NAME: Final = "Telemetry"
_MOST_WAITING: Final = 256
"""Commands that wait for a client to read them; further ones are dropped."""
_LARGEST: Final = 1 << 20
"""Bytes of such commands: a command may have a message."""
_FEW: Final = 8
"""Commands that wait before no more of what the client sends is processed."""
_MOST_ASKED: Final = 256
"""Commands whose answers a client owes."""
_BAD, _BAD_END = 40000, 50000
"""Codes that are a fault of the client."""

Register: TypeAlias = Callable[[Caller, Settings], Awaitable[GrpcClient]]


class TelemetryStream:
    """One open stream."""

    def __init__(self) -> None:
        self._out: asyncio.Queue[TelemetryCommand | Exception | None] = asyncio.Queue()
        self._size = 0
        self._taken = asyncio.Event()
        self._asked: dict[str, asyncio.Future[TelemetryCommand]] = {}

    def send(self, command: TelemetryCommand) -> None:
        """Send a command, unless the client has not read many of the last ones."""
        size, waiting = command.ByteSize(), self._out.qsize()
        if waiting < _MOST_WAITING and (not waiting or self._size + size <= _LARGEST):
            self.answer(command)

    def answer(self, command: TelemetryCommand) -> None:
        """Send the answer to what the client has sent, after `wait_for_reader`."""
        self._size += command.ByteSize()
        self._out.put_nowait(command)

    async def wait_for_reader(self) -> None:
        """Return once the client has read most of what was sent."""
        while self._out.qsize() >= _FEW:
            self._taken.clear()
            await self._taken.wait()

    async def ask(self, command: TelemetryCommand, nonce: str) -> TelemetryCommand:
        """Send a command, and return the client's answer to its nonce."""
        if len(self._asked) >= _MOST_ASKED:
            raise GrpcError(GrpcStatus.RESOURCE_EXHAUSTED, "the client owes too many answers")
        answer = self._asked[nonce] = asyncio.get_running_loop().create_future()
        try:
            self.send(command)
            return await answer
        finally:
            self._asked.pop(nonce, None)

    def resolve(self, nonce: str, answer: TelemetryCommand) -> None:
        """Pass on an answer; one that nobody waits for is dropped."""
        found = self._asked.get(nonce)
        if found is not None and not found.done():
            found.set_result(answer)

    def end(self, error: Exception | None = None) -> None:
        """End the stream once everything is sent."""
        self._out.put_nowait(error)

    async def sent(self) -> AsyncIterator[TelemetryCommand]:
        """Yield what is sent.

        Raises:
            Exception: the one with which the stream ends.
        """
        while (command := await self._out.get()) is not None:
            if isinstance(command, Exception):
                raise command
            self._size -= command.ByteSize()
            self._taken.set()
            yield command


class Telemetry:
    """Serves the streams.

    Args:
        register: notes the settings of a client.
    """

    def __init__(
        self,
        gate: Gate,
        counts: CallCounts,
        clients: GrpcClients,
        register: Register,
        settings: ProxySettings,
    ) -> None:
        self._gate, self._counts, self._clients = gate, counts, clients
        self._register, self._most = register, settings.max_telemetry_streams
        self._shares, self._streams = Shares(lambda: settings.max_address_share), 0

    def method(self) -> Method:
        """Return the method of the service."""
        return bidirectional(NAME, TelemetryCommand, TelemetryCommand, self._serve)

    async def _serve(
        self, call: Call, requests: AsyncIterator[TelemetryCommand]
    ) -> AsyncIterator[TelemetryCommand]:
        owner, most = owner_of(call.peer), self._most
        refusal = self._shares.refusal(owner, self._streams, most, "maxTelemetryStreams")
        if refusal is not None:
            raise GrpcError(GrpcStatus.RESOURCE_EXHAUSTED, f"no further stream: {refusal}")
        self._count(owner, 1)
        stream = TelemetryStream()
        reading = asyncio.create_task(self._read(call, requests, stream))
        try:
            async for command in stream.sent():
                yield command
        finally:
            self._count(owner, -1)
            self._clients.detach(stream)
            reading.cancel()
            await asyncio.wait([reading])

    def _count(self, owner: str, streams: int) -> None:
        self._streams += streams
        self._shares.add(owner, streams)

    async def _read(
        self, call: Call, requests: AsyncIterator[TelemetryCommand], stream: TelemetryStream
    ) -> None:
        """Process what the client sends; end the stream when the client does, or is at fault."""
        try:
            async for command in requests:
                await stream.wait_for_reader()
                await self._process(call, command, stream)
        except Exception as error:  # noqa: BLE001 (whatever it is, the client is told)
            stream.end(self._fault(call, error))
        else:
            stream.end()

    async def _process(
        self, call: Call, command: TelemetryCommand, stream: TelemetryStream
    ) -> None:
        kind = command.WhichOneof("command")
        if kind == "settings":
            await self._settings(call, command.settings, stream)
        elif kind == "thread_stack_trace":
            stream.resolve(command.thread_stack_trace.nonce, command)
        elif kind == "verify_message_result":
            stream.resolve(command.verify_message_result.nonce, command)

    async def _settings(self, call: Call, settings: Settings, stream: TelemetryStream) -> None:
        if settings.WhichOneof("pub_sub") is None:
            reason = "the settings have neither publishing nor subscription"
            raise GrpcError(GrpcStatus.INVALID_ARGUMENT, reason)
        try:
            client = await self._register(await self._gate.caller(call), settings)
        except Exception as error:
            outcome = outcome_of_error(error, f"{call.peer}: {NAME}")
            self._counts.add(NAME, outcome.code, None, call.peer)
            if outcome.code != Code.UNAUTHORIZED:
                raise
            stream.answer(TelemetryCommand(status=outcome.status))
            return
        self._clients.attach(client, stream)
        self._counts.add(NAME, Code.OK, None, call.peer)
        stream.answer(TelemetryCommand(status=OK.status, settings=client.settings))

    def _fault(self, call: Call, error: Exception) -> Exception:
        if isinstance(error, GrpcError):
            return error
        outcome = outcome_of_error(error, f"{call.peer}: {NAME}")
        is_bad = _BAD <= outcome.code < _BAD_END
        reason = f"process client telemetryCommand failed. {outcome.message}"
        return GrpcError(GrpcStatus.INVALID_ARGUMENT if is_bad else GrpcStatus.INTERNAL, reason)
