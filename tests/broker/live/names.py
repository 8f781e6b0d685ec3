"""How often a broker registers at a name server, and how long it waits for the answer."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from mqlake.broker.state.registration import registration
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import Command, response
from mqlake.remoting.connection import Peer
from mqlake.remoting.route import Route
from mqlake.remoting.server import RemotingServer
from tests.broker.admin.asking import done, wanted
from tests.broker.live.observing import change, observes, until
from tests.broker.running import Running, running


class Registered:
    """A name server that counts registrations, and may leave them without an answer."""

    def __init__(self) -> None:
        self.count = 0
        self.answers = True
        self.parts: list[str | None] = []
        self.singles = 0
        codes = (
            RequestCode.REGISTER_BROKER,
            RequestCode.UNREGISTER_BROKER,
            RequestCode.REGISTER_TOPIC_IN_NAMESRV,
        )
        self.server = RemotingServer([Route(code, self._serve) for code in codes])

    def _serve(self, _peer: Peer, request: Command) -> Command | None:
        self.count += 1
        if request.code == RequestCode.REGISTER_BROKER:
            self.parts.append(request.fields.get("registrationPart"))
        self.singles += request.code == RequestCode.REGISTER_TOPIC_IN_NAMESRV
        return response(request) if self.answers else None


@asynccontextmanager
async def registering(
    like: Running, **settings: object
) -> AsyncIterator[tuple[Running, Registered]]:
    """Run another broker, at a name server of its own."""
    names = Registered()
    port = await names.server.start("127.0.0.1", 0)
    path = like.runtime.settings.store_path / "other"
    try:
        async with running(path, namesrvAddr=f"127.0.0.1:{port}", **settings) as broker:
            yield broker, names
    finally:
        await names.server.stop(0.1)


@observes("registerNameServerPeriod")
async def register_period(like: Running) -> None:
    module: Any = registration
    shortest = module._SHORTEST
    module._SHORTEST = 0.01
    try:
        async with registering(like, registerNameServerPeriod=60_000) as (broker, names):
            await until(lambda: names.count >= 1)
            await change(broker, registerNameServerPeriod=10)
            await until(lambda: names.count > 5)
    finally:
        module._SHORTEST = shortest


@observes("registerBrokerTimeoutMills")
async def register_timeout(like: Running) -> None:
    async with registering(like, registerBrokerTimeoutMills=3_600_000) as (broker, names):
        await until(lambda: names.count >= 1)
        names.answers = False
        await change(broker, registerBrokerTimeoutMills=20)
        count = names.count
        broker.state.names.changed()
        await until(lambda: names.count >= count + 2)


@observes("enableSplitRegistration")
async def split_registration(like: Running) -> None:
    async with registering(like, splitRegistrationSize=2) as (broker, names):
        assert names.parts == [None]
        await change(broker, enableSplitRegistration=True)
        broker.state.names.changed()
        await broker.state.names.told()
        assert names.parts[-1] == "last"


@observes("splitRegistrationSize")
async def split_registration_size(like: Running) -> None:
    async with registering(like) as (broker, names):
        await done(broker, RequestCode.UPDATE_AND_CREATE_TOPIC, wanted("First"))
        assert not names.singles
        await change(broker, splitRegistrationSize=2)
        await done(broker, RequestCode.UPDATE_AND_CREATE_TOPIC, wanted("Second"))
        assert names.singles == 1


@observes("enableSingleTopicRegister")
async def single_topic_register(like: Running) -> None:
    async with registering(like, splitRegistrationSize=2) as (broker, names):
        await change(broker, enableSingleTopicRegister=False)
        await done(broker, RequestCode.UPDATE_AND_CREATE_TOPIC, wanted("First"))
        assert names.parts[-1] == "changes"
        assert not names.singles
