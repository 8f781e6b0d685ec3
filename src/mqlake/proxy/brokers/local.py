"""The broker in whose process the service is (upstream: `LocalServiceManager`)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final

from mqlake.broker.broker import Broker
from mqlake.formats.config.subscription_group import SubscriptionGroup
from mqlake.formats.config.topics import MESSAGE_TYPE, PERM_WRITE
from mqlake.grpc.messages import Code
from mqlake.protocol.bodies.heartbeat import Heartbeat
from mqlake.protocol.bodies.route import TopicRouteData
from mqlake.protocol.body import decode_body, encode_body
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, request
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.headers.namesrv import GetRouteInfoHeader
from mqlake.protocol.signature import Credentials, signed
from mqlake.proxy.brokers.link import BrokerLink
from mqlake.proxy.brokers.port import UNSPECIFIED, Caller, Destination, Pushed
from mqlake.proxy.errors import StatusError
from mqlake.remoting.connection import Request, as_command

_SPARE: Final = 8
"""Connections for polls that are kept for the next polls of the same client."""
_UNUSED: Final = 5.0
"""Seconds without a call after which the connection of an unknown client is closed, or twice that
time."""
_AT_ONCE: Final = 64
"""Connections that are looked at in one round of the loop."""
_PATIENCE: Final = 60.0
"""Seconds for requests that the broker answers at once, however busy the machine is."""


async def _nobody(_command: Command, _client_id: str | None) -> Command | None:
    return None


class LocalBrokers:
    """Asks the broker of this process over connections without sockets.

    Each registered client has one; the calls of others share one for each gRPC connection. A
    request that may wait for messages has a connection for itself meanwhile, which is closed if
    nobody waits for the answer any more.
    """

    def __init__(self, broker: Broker) -> None:
        self._broker, self._pushed = broker, _nobody
        self._registered: dict[str, BrokerLink] = {}
        self._others: dict[str, BrokerLink] = {}
        self._spare: dict[str, list[BrokerLink]] = {}
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(_UNUSED, self._look)

    @property
    def is_authenticating(self) -> bool:
        """Whether the broker checks who signs a request."""
        return bool(self._broker.state.access.checks)

    @property
    def refuses_unsigned(self) -> bool:
        """Return False: the broker has lists of requests that need no signature."""
        return False

    @property
    def answer_at_once(self) -> bool:
        """Return True: the broker is in this process."""
        return True

    def serve_pushed(self, serve: Pushed) -> None:
        """Pass requests of the broker to clients from now on to a function."""
        self._pushed = serve

    async def credentials(
        self,
        name: str,
        address: str,  # noqa: ARG002 (it takes no time)
        *,
        is_doubted: bool = False,  # noqa: ARG002 (they are always those of now)
    ) -> Credentials | None:
        """Return the credentials of a user; None if there is no such user."""
        return self._broker.state.access.credentials(name)

    def check(self, command: Command, caller: Caller) -> None:
        """Refuse a request that its sender may not make, without sending it."""
        self._broker.state.access.check(_in_the_name_of(caller, command), caller.address)

    async def route(self, topic: str, caller: Caller) -> TopicRouteData:
        """Return the queues of a topic on this broker."""
        command = request(RequestCode.GET_ROUTEINFO_BY_TOPIC, GetRouteInfoHeader(topic=topic))
        answer = await self._link(caller).request(_in_the_name_of(caller, command), _PATIENCE)
        return decode_body(TopicRouteData, _checked(answer).body)

    async def destination(self, topic: str) -> Destination:
        """Return where messages of a topic can be sent."""
        found, settings = self._broker.state.topics.get(topic), self._broker.settings
        if found is None:
            return Destination(UNSPECIFIED, ())
        perm = found.perm & settings.broker_permission
        count = found.write_queue_nums if perm & PERM_WRITE else 0
        message_type = found.attributes.get(MESSAGE_TYPE, "")
        return Destination(message_type, ((settings.broker_name, count),))

    async def message_type(self, topic: str) -> str:
        """Return the attribute `message.type` of a topic; "" if it has none."""
        found = self._broker.state.topics.get(topic)
        return "" if found is None else found.attributes.get(MESSAGE_TYPE, "")

    async def group(
        self,
        name: str,
        caller: Caller,  # noqa: ARG002 (nothing is created)
    ) -> SubscriptionGroup | None:
        """Return the settings of a consumer group; None if it does not exist."""
        return self._broker.state.groups.get(name)

    async def request(
        self,
        broker: str,
        command: Command | Request,
        caller: Caller,
        seconds: float,
    ) -> Command:
        """Return the response of the broker, whatever its code."""
        self._check_name(broker)
        if isinstance(command, Command) or caller.credentials is not None:
            command = _in_the_name_of(caller, as_command(command))
        return await self._link(caller).request(command, seconds)

    async def poll(
        self,
        broker: str,
        command: Command,
        caller: Caller,
        seconds: float,
        late: Callable[[Command], None],
    ) -> Command:
        """Return the response to a request that may wait for messages."""
        self._check_name(broker)
        link = self._poll_link(caller)
        answer = await link.poll(_in_the_name_of(caller, command), seconds, late)
        self._keep(caller, link)
        return answer

    def _poll_link(self, caller: Caller) -> BrokerLink:
        spare = self._spare.get(caller.client_id, [])
        while spare:
            link = spare.pop()
            if not link.is_closed and _is_from(link, caller):
                return link
            link.end()
        return self._open(None, caller.address)

    def _keep(self, caller: Caller, link: BrokerLink) -> None:
        """Keep a connection for the next poll of a registered client."""
        spare = self._spare.setdefault(caller.client_id, [])
        if caller.client_id in self._registered and len(spare) < _SPARE:
            spare.append(link)
            return
        link.end()
        if not spare:
            del self._spare[caller.client_id]

    async def register(self, caller: Caller, heartbeat: Heartbeat) -> None:
        """Make a client known to the broker, or tell it that the client is there."""
        old = link = self._registered.get(caller.client_id)
        if link is None or link.is_closed or not _is_from(link, caller):
            link = self._registered[caller.client_id] = self._open(caller.client_id, caller.address)
        command = request(RequestCode.HEART_BEAT, body=encode_body(heartbeat))
        try:
            _checked(await link.request(_in_the_name_of(caller, command), _PATIENCE))
        except BaseException:
            if link is not old:
                link.end()
                if old is not None and not old.is_closed:
                    self._registered.setdefault(caller.client_id, old)
            raise
        if old is not None and link is not old:
            old.end()

    def unregister(self, caller: Caller, heartbeat: Heartbeat) -> None:  # noqa: ARG002
        """Let the broker forget a client that was registered."""
        for link in self._spare.pop(caller.client_id, []):
            link.end()
        link = self._registered.get(caller.client_id)
        if link is not None:
            link.end()

    def _look(self) -> None:
        """Close connections of unknown clients that nobody uses any more."""
        self._timer = self._loop.call_later(_UNUSED, self._look)
        self._end_unused(iter(list(self._others.values())))

    def _end_unused(self, links: Iterator[BrokerLink]) -> None:
        """Look at some of these connections now, and at the others in the next rounds."""
        some = list(islice(links, _AT_ONCE))
        for link in some:
            if link.was_unused():
                link.end()
        if some:
            self._loop.call_soon(self._end_unused, links)

    def stop(self) -> None:
        """Close all connections."""
        self._timer.cancel()
        spare = [link for links in self._spare.values() for link in links]
        for link in (*self._registered.values(), *self._others.values(), *spare):
            link.end()
        self._spare.clear()

    def _check_name(self, broker: str) -> None:
        own = self._broker.settings.broker_name
        if broker != own:
            raise StatusError(
                Code.BAD_REQUEST, f"there is no broker {broker[:255]!r} here: this one is {own}"
            )

    def _link(self, caller: Caller) -> BrokerLink:
        link = self._registered.get(caller.client_id)
        if link is not None and not link.is_closed and _is_from(link, caller):
            return link
        link = self._others.get(caller.address)
        if link is None or link.is_closed:
            link = self._others[caller.address] = self._open(None, caller.address)
        return link

    def _open(self, client_id: str | None, address: str) -> BrokerLink:
        link = BrokerLink(self._broker.connect, client_id, address, self._serve, self._closed)
        if link.is_closed:
            reason = "the broker accepts no further connection of this address (maxConnectionsPer…)"
            raise StatusError(Code.TOO_MANY_REQUESTS, reason)
        return link

    async def _serve(self, command: Command, client_id: str | None) -> Command | None:
        return await self._pushed(command, client_id)

    def _closed(self, link: BrokerLink) -> None:
        if link.client_id is not None and self._registered.get(link.client_id) is link:
            del self._registered[link.client_id]
        elif self._others.get(link.address) is link:
            del self._others[link.address]


def _is_from(link: BrokerLink, caller: Caller) -> bool:
    """Return whether a connection has the host of a caller, by which the broker checks requests:
    anybody may call with the id of another client.
    """
    if link.address == caller.address:
        return True
    return link.address.rpartition(":")[0] == caller.address.rpartition(":")[0]


def _in_the_name_of(caller: Caller, command: Command) -> Command:
    """Return a request as if the client had sent it to the broker itself."""
    command.language, command.version = caller.language, caller.version
    return command if caller.credentials is None else signed(command, caller.credentials)


def _checked(answer: Command) -> Command:
    if answer.code != ResponseCode.SUCCESS:
        raise RemotingError(answer.code, answer.remark or "")
    return answer
