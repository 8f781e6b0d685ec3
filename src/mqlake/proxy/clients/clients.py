"""The clients that have sent their settings, until they end (upstream: `GrpcClientSettingsManager`,
`GrpcChannelManager`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from itertools import count, islice
from typing import Final

from mqlake.grpc.messages import Code, Settings
from mqlake.protocol.bodies.heartbeat import Heartbeat
from mqlake.proxy.brokers.port import Caller
from mqlake.proxy.clients.client import CommandStream, GrpcClient
from mqlake.proxy.errors import StatusError
from mqlake.proxy.settings import ProxySettings
from mqlake.remoting.shares import Shares, owner_of

LOOK: Final = 5.0
"""Seconds between two looks for clients that are gone without notice."""

_AT_ONCE: Final = 32
"""Clients that end in one round of the loop."""
_SETTINGS_LATE: Final = 1.0
"""Seconds that a call waits for the settings of its client."""

_log: Final = logging.getLogger("mqlake.proxy")


class _Expected:
    """Calls that wait for the settings of a client.

    Attributes:
        waiting: how many they are.
    """

    def __init__(self) -> None:
        self.event, self.waiting = asyncio.Event(), 0


class GrpcClients:
    """The clients of the service, by id.

    Args:
        now: returns milliseconds.
    """

    def __init__(self, settings: ProxySettings, now: Callable[[], int]) -> None:
        self._settings, self._now = settings, now
        self._clients: dict[str, GrpcClient] = {}
        self._shares = Shares(lambda: settings.max_address_share)
        self._sizes = Shares(lambda: settings.max_address_share)
        self._size = 0
        self._expected: dict[str, _Expected] = {}
        # Who registers the clients that brokers are asked about now.
        self._registering: dict[str, list[Caller]] = {}
        # The ids of the clients that send to a topic.
        self._producers: dict[str, dict[str, None]] = {}
        self._turns = count()
        # The client that has sent its settings over a stream.
        self._streams: dict[CommandStream, str] = {}
        self._on_end: list[Callable[[GrpcClient], object]] = []

    def __len__(self) -> int:
        return len(self._clients)

    def __iter__(self) -> Iterator[GrpcClient]:
        return iter(list(self._clients.values()))

    def get(self, client_id: str) -> GrpcClient | None:
        """Return a client; None if it has not sent its settings, or has ended."""
        return self._clients.get(client_id)

    def known(self, client_id: str) -> GrpcClient:
        """Return a client.

        Raises:
            StatusError: UNRECOGNIZED_CLIENT_TYPE, after which clients send their settings again.
        """
        client = self._clients.get(client_id)
        if client is None:
            reason = f"the client {client_id[:255]!r} has sent no settings, or was silent too long"
            raise StatusError(Code.UNRECOGNIZED_CLIENT_TYPE, reason)
        return client

    def check_user(self, caller: Caller, client: GrpcClient | None) -> None:
        """Refuse a caller that is another user than the one of a client.

        Otherwise it would get what brokers send to the client, and use up what the client may have.

        Args:
            client: the client with the caller's id; None if it is not known.

        Raises:
            StatusError: UNAUTHORIZED.
        """
        if client is not None:
            _check_same_user(caller, client.caller)

    @contextmanager
    def registering(self, caller: Caller) -> Generator[None]:
        """Let no other user register a client with the same id until the block ends.

        Raises:
            StatusError: UNAUTHORIZED: another user has, or is about to.
        """
        client_id = caller.client_id
        self.check_user(caller, self.get(client_id))
        for other in self._registering.get(client_id, ()):
            _check_same_user(caller, other)
        callers = self._registering.setdefault(client_id, [])
        callers.append(caller)
        try:
            yield
        finally:
            callers.remove(caller)
            if not callers:
                del self._registering[client_id]

    async def arriving(self, client_id: str) -> GrpcClient:
        """Return a client, which may be about to send its settings.

        RocketMQ's Python client does not wait for the answer to its settings before its first call.

        Raises:
            StatusError: UNRECOGNIZED_CLIENT_TYPE: there are no settings within a second.
        """
        if client_id not in self._clients:
            expected = self._expected.get(client_id)
            if expected is None:
                expected = self._expected[client_id] = _Expected()
            expected.waiting += 1
            try:
                async with asyncio.timeout(_SETTINGS_LATE):
                    await expected.event.wait()
            except TimeoutError:
                pass
            finally:
                expected.waiting -= 1
                if not expected.waiting and self._expected.get(client_id) is expected:
                    del self._expected[client_id]
        return self.known(client_id)

    def producer_of(self, topic: str) -> GrpcClient | None:
        """Return a client with a stream that sends to a topic, a different one each time."""
        ids = self._producers.get(topic, ())
        found = [client for each in ids if (client := self._clients[each]).stream is not None]
        return found[next(self._turns) % len(found)] if found else None

    def on_end(self, callback: Callable[[GrpcClient], object]) -> None:
        """Call a function with each client that ends, after it was removed."""
        self._on_end.append(callback)

    def check_room(self, caller: Caller, size: int) -> None:
        """Refuse a client that would exceed a limit.

        Args:
            size: of its settings, in bytes.

        Raises:
            StatusError: there are too many clients, or their settings are too large together.
        """
        owner, most = owner_of(caller.address), self._settings.max_client_nums
        old, used = self._clients.get(caller.client_id), len(self._clients)
        refusal = None if old else self._shares.refusal(owner, used, most, "maxClientNums")
        most, more = self._settings.max_client_settings_size, size - (old.size if old else 0)
        if refusal is None and more > 0:
            name = "maxClientSettingsSize"
            refusal = self._sizes.refusal(owner, self._size, most, name, more)
        if refusal is not None:
            raise StatusError(Code.TOO_MANY_REQUESTS, f"the client is refused: {refusal}")

    def put(self, caller: Caller, settings: Settings, heartbeat: Heartbeat) -> GrpcClient:
        """Note the settings of a client for which there is room."""
        new = GrpcClient(settings, caller, heartbeat, owner_of(caller.address), self._now())
        old = self._clients.get(caller.client_id)
        if old is not None:
            self._leave(old)
            new.use(old.stream)
            del self._clients[caller.client_id]
        self._clients[caller.client_id] = new
        self._count(new, 1)
        expected = self._expected.get(new.client_id)
        if expected is not None:
            expected.event.set()
        for each in heartbeat.producer_data_set:
            self._producers.setdefault(each.group_name, {})[new.client_id] = None
        return new

    def _leave(self, client: GrpcClient) -> None:
        self._count(client, -1)
        for each in client.heartbeat.producer_data_set:
            ids = self._producers.get(each.group_name, {})
            ids.pop(client.client_id, None)
            if not ids:
                self._producers.pop(each.group_name, None)

    def _count(self, client: GrpcClient, sign: int) -> None:
        self._shares.add(client.owner, sign)
        self._sizes.add(client.owner, sign * client.size)
        self._size += sign * client.size

    def attach(self, client: GrpcClient, stream: CommandStream) -> None:
        """Let commands for a client be sent over a stream, instead of an earlier one."""
        self._streams[stream] = client.client_id
        client.use(stream)

    def detach(self, stream: CommandStream) -> None:
        """Note that a stream has ended."""
        client_id = self._streams.pop(stream, None)
        client = self._clients.get(client_id) if client_id is not None else None
        if client is not None and client.stream is stream:
            client.use(None)

    def end(self, client_id: str) -> None:
        """Remove a client."""
        client = self._clients.pop(client_id, None)
        if client is None:
            return
        self._leave(client)
        client.use(None)
        for callback in self._on_end:
            try:
                callback(client)
            except Exception:  # noqa: BLE001 (the others are to know, too)
                _log.exception("%s: the end of the client failed", client_id)

    def note_alive(self, client: GrpcClient) -> None:
        """Note that a client was heard of."""
        client.note_alive(self._now())
        # The first ones are those that were not heard of for longest.
        if self._clients.pop(client.client_id, None) is not None:
            self._clients[client.client_id] = client

    def expire(self) -> bool:
        """Remove some clients that were not heard of for too long; return whether there may be
        more.
        """
        oldest = self._now() - self._settings.channel_expired_timeout
        for client in list(islice(self._clients.values(), _AT_ONCE)):
            if client.seen >= oldest:
                return False
            _log.info("client %s has sent no heartbeat for too long", client.client_id)
            self.end(client.client_id)
        return bool(self._clients)


def _check_same_user(caller: Caller, known: Caller) -> None:
    """Refuse a caller that is another user than a known one.

    Raises:
        StatusError: UNAUTHORIZED.
    """
    own, other = caller.credentials, known.credentials
    if other is not None and (own is None or own.access_key != other.access_key):
        raise StatusError(Code.UNAUTHORIZED, "the client id belongs to another user")
