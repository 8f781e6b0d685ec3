"""Brokers are notified when the smallest id of their name changes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from mqlake.namesrv import notices as notices_module
from mqlake.namesrv.acting import SmallestIdChange
from mqlake.namesrv.notices import SmallestIdNotices
from mqlake.namesrv.routes import RouteTable
from mqlake.namesrv.settings import NamesrvSettings
from mqlake.programs.ports import free_port
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import Command, response
from mqlake.protocol.headers.namesrv import NotifyMinBrokerIdChangeHeader
from mqlake.protocol.signature import Credentials
from mqlake.remoting.connection import Peer
from mqlake.remoting.route import Route
from mqlake.remoting.server import RemotingServer
from mqlake.remoting.slices import run_at_once
from mqlake.remoting.tls.options import ClientTls
from tests import simulated
from tests.namesrv.asking import Asking, running
from tests.namesrv.registrations import place, registration

SETTINGS = NamesrvSettings()


class Group:
    """The brokers of name "a" at a name server, which says what has changed."""

    def __init__(self, *, acting: bool | None = True) -> None:
        self.routes, self._acting = RouteTable(), acting
        self.changes: list[tuple[str, SmallestIdChange]] = []
        self.routes.on_smallest_id = lambda name, change: self.changes.append((name, change))

    def come(self, broker_id: int, address: str = "") -> None:
        at = place(address or f"h:{broker_id}", "a", broker_id)
        new = registration("T", at=at, acting=self._acting)
        run_at_once(self.routes.register(new, SETTINGS, 0))

    def go(self, broker_id: int) -> None:
        run_at_once(self.routes.unregister(place(f"h:{broker_id}", "a", broker_id)))

    def last(self) -> tuple[object, ...]:
        """Return what the only change says."""
        ((name, change),) = self.changes
        assert name == change.header.broker_name == "a"
        self.changes.clear()
        header = change.header
        return (
            header.min_broker_id,
            header.min_broker_addr,
            header.offline_broker_addr,
            header.ha_broker_addr,
            change.addresses,
        )


def test_those_that_stay_are_notified_of_the_one_that_goes() -> None:
    group = Group()
    for broker_id in (0, 1, 2):
        group.come(broker_id)
    assert group.changes == []  # the smallest came first
    group.go(0)
    assert group.last() == (1, "h:1", "h:0", None, ("h:1", "h:2"))
    group.go(2)
    assert group.changes == []
    group.go(1)
    assert group.changes == []  # nobody is left


def test_the_others_are_notified_of_the_one_that_comes() -> None:
    group = Group()
    for broker_id in (2, 3):
        group.come(broker_id)
    group.come(1)
    assert group.last() == (1, "h:1", None, "ha-h:1", ("h:2", "h:3"))
    group.come(0)
    assert group.last() == (0, "h:0", None, "ha-h:0", ("h:2", "h:3", "h:1"))
    group.come(0)
    assert group.changes == []  # as it was


def test_a_broker_that_is_alone_is_not_notified() -> None:
    """The name server opens no connection to an address only because it was registered."""
    group = Group()
    group.come(1)
    group.come(0, "h:1")
    assert group.changes == []


def test_one_that_is_not_there_changes_nothing() -> None:
    group = Group()
    group.come(1)
    group.come(2)
    run_at_once(group.routes.unregister(place("h:9", "a", 1)))
    assert group.changes == []


@pytest.mark.parametrize("acting", [False, None])
def test_brokers_whose_slaves_do_not_act_are_not_notified(acting: bool | None) -> None:
    group = Group(acting=acting)
    group.come(1)
    group.come(0)
    group.go(0)
    assert group.changes == []


def test_a_silent_master_and_a_lost_connection_are_gone_too() -> None:
    group = Group()
    for broker_id, connection in ((0, "one"), (1, "two"), (2, "two")):
        new = registration(
            "T", at=place(f"h:{broker_id}", "a", broker_id), acting=True, connection=connection,
            timeout=10 if broker_id == 0 else 1000,
        )  # fmt: skip
        run_at_once(group.routes.register(new, SETTINGS, 0))
    run_at_once(group.routes.expire(11))
    assert group.last() == (1, "h:1", "h:0", None, ("h:1", "h:2"))
    run_at_once(group.routes.lose("two"))
    assert group.last() == (2, "h:2", "h:1", None, ("h:2",))


class Notified:
    """A broker that only listens to a name server."""

    def __init__(self) -> None:
        self.address = ""
        self.notices: asyncio.Queue[NotifyMinBrokerIdChangeHeader] = asyncio.Queue()

    def routes(self) -> list[Route]:
        return [Route(RequestCode.NOTIFY_MIN_BROKER_ID_CHANGE, self._notice)]

    def _notice(self, _peer: Peer, request: Command) -> Command:
        self.notices.put_nowait(request.header(NotifyMinBrokerIdChangeHeader))
        return response(request)


@asynccontextmanager
async def notified() -> AsyncIterator[Notified]:
    broker = Notified()
    server = RemotingServer(broker.routes())
    broker.address = f"127.0.0.1:{await server.start('127.0.0.1', 0)}"
    try:
        yield broker
    finally:
        await server.stop()


async def leave(names: Asking, address: str, broker_id: int) -> None:
    fields = {
        "brokerName": "a", "brokerAddr": address, "clusterName": "c", "brokerId": str(broker_id),
    }  # fmt: skip
    await names.ask(RequestCode.UNREGISTER_BROKER, fields)


def test_notices_over_the_wire() -> None:
    """One broker that is gone without a word keeps none from the others."""

    async def run() -> None:
        async with running(notifyMinBrokerIdChanged=True) as names, notified() as broker:
            acts: dict[str, object] = {"enable_acting_master": True}
            dead = f"127.0.0.1:{free_port()}"
            await names.register(broker_addr=broker.address, broker_id=2, **acts)
            await names.register(broker_addr=dead, broker_id=1, ha_server_addr="", **acts)
            first = await broker.notices.get()
            assert (first.min_broker_id, first.min_broker_addr) == (1, dead)
            await names.register(broker_addr="127.0.0.1:9", **acts)
            came = await broker.notices.get()
            assert came == NotifyMinBrokerIdChangeHeader(
                min_broker_id=0,
                broker_name="a",
                min_broker_addr="127.0.0.1:9",
                ha_broker_addr="h:2",
            )
            await leave(names, "127.0.0.1:9", 0)
            went = await broker.notices.get()
            assert (went.min_broker_id, went.offline_broker_addr) == (1, "127.0.0.1:9")
            assert went.ha_broker_addr is None

    simulated.run(run())


def test_nobody_is_notified_unless_the_name_server_is_told_to() -> None:
    async def run() -> None:
        async with running() as names, notified() as broker:
            acts: dict[str, object] = {"enable_acting_master": True}
            await names.register(broker_addr=broker.address, broker_id=2, **acts)
            await names.register(broker_addr="127.0.0.1:9", broker_id=1, **acts)
            # As soon as it is told to, by the same way: nothing came before that.
            body = b"notifyMinBrokerIdChanged=true"
            await names.ask(RequestCode.UPDATE_NAMESRV_CONFIG, body=body)
            await leave(names, "127.0.0.1:9", 1)
            only = await broker.notices.get()
            assert (only.min_broker_id, only.offline_broker_addr) == (2, "127.0.0.1:9")
            assert broker.notices.empty()

    simulated.run(run())


class Client:
    """Notes whom it would notify; it waits until it may end."""

    may_end: asyncio.Event
    told: list[str]
    at_once = most = 0

    def __init__(
        self, tls: ClientTls | None = None, credentials: Credentials | None = None
    ) -> None:
        pass

    async def request(self, address: str, _notice: Command, _timeout: float) -> None:
        kind = type(self)
        kind.told.append(address)
        kind.at_once += 1
        kind.most = max(kind.most, kind.at_once)
        await kind.may_end.wait()
        kind.at_once -= 1
        if address == "bad:1":
            raise UnicodeError("label too long")

    async def close(self) -> None:
        pass


def change(*addresses: str) -> SmallestIdChange:
    header = NotifyMinBrokerIdChangeHeader(min_broker_id=1, broker_name="a", min_broker_addr="h:1")
    return SmallestIdChange(header, addresses)


def test_few_brokers_are_notified_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        Client.may_end, Client.told = asyncio.Event(), []
        monkeypatch.setattr(notices_module, "RemotingClient", Client)
        monkeypatch.setattr(notices_module, "_MOST_NAMES", 40)
        notices = SmallestIdNotices()
        for number in range(50):
            notices.notify(f"name{number}", change("bad:1", f"h:{number}"))
        notices.notify("name0", change("later:1"))
        for _ in range(5):
            await asyncio.sleep(0)
        assert len(Client.told) == 16
        Client.may_end.set()
        async with asyncio.timeout(60):
            while notices._tasks:  # noqa: ASYNC110 (nothing tells)
                await asyncio.sleep(0)
        assert Client.most == 16
        assert len(Client.told) == 79  # The first change of name0 was never sent.
        assert "later:1" in Client.told
        await notices.stop()

    simulated.run(run())


def test_nobody_is_notified_that_a_name_server_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        told: list[str] = []
        async with running(notifyMinBrokerIdChanged=True) as names:
            for broker_id in (0, 1):
                await names.register(
                    broker_addr=f"h:{broker_id}", broker_id=broker_id, enable_acting_master=True
                )
            server, live = names.server, names.server._state.routes.brokers.live
            close = server._server.stop

            async def close_all() -> None:
                await close()
                async with asyncio.timeout(60):
                    while live:  # noqa: ASYNC110 (nothing tells)
                        await asyncio.sleep(0)

            monkeypatch.setattr(server._server, "stop", close_all)
            monkeypatch.setattr(server._notices, "notify", lambda name, _change: told.append(name))
            await server.stop()
        assert told == []

    simulated.run(run())
