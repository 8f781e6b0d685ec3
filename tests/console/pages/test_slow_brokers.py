"""The only broker, or the name server, is slow: pages show what they know, and what is missing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from mqlake.client.cluster import TIMEOUT
from mqlake.console.cluster.groups import config_of
from mqlake.console.cluster.topics import tables
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import Command
from mqlake.remoting.client import RemotingClient
from mqlake.remoting.errors import RequestTimeoutError
from mqlake.testing.running_broker import RunningBroker
from tests.console.pages.test_groups import consume, send
from tests.console.site import Site, site, words
from tests.until import PATIENCE

NO_ANSWER = "no answer within 3 s"
UNKNOWN = "slowed \u2013"
SAYS = "broker-a did not answer:"
PAGES = [
    ("/cluster", "It does not answer."),
    ("/cluster/broker?address={address}", f"{SAYS} its state and its settings are missing"),
    ("/topics", f"{SAYS} its topics' settings are missing"),
    ("/topics/topic?topic=slow", f"{SAYS} its queues and rates are missing"),
    ("/groups", f"{SAYS} its groups are missing"),
    ("/groups/group?group=slowed", f"{SAYS} its queues are missing"),
    ("/messages?topic=slow", f"{SAYS} its messages were not searched"),
    ("/messages?topic=slow&by=key&key=x", f"{SAYS} its messages were not searched"),
    ("/messages?topic=slow&by=offset", f"{SAYS} its messages were not searched"),
    ("/messages/tail?topic=slow", f"{SAYS} its messages are missing"),
    ("/delayed", f"{SAYS} its messages are missing"),
    ("/delayed/half", f"{SAYS} its messages are missing"),
]


@pytest.fixture(scope="module", autouse=True)
def content(running: RunningBroker) -> None:
    send(running, "slow", 5)
    consume(running, "slowed", "slow", 5)
    send(running, "slow", 2)


class SlowServers:
    """Has some requests of a console fail as those that are not answered in time.

    Attributes:
        addresses: the servers.
        codes: the requests; None for all.
        is_waiting: whether the requests wait for ever instead.
    """

    def __init__(self, visitor: Site, monkeypatch: pytest.MonkeyPatch) -> None:
        self.addresses: set[str] = set()
        self.codes: set[RequestCode] | None = None
        self.is_waiting = False
        client = visitor.console.view(None).admin.client
        request = RemotingClient.request

        async def answer(address: str, command: Command, seconds: float = TIMEOUT) -> Command:
            if address in self.addresses and (self.codes is None or command.code in self.codes):
                if self.is_waiting:
                    await asyncio.Event().wait()
                raise RequestTimeoutError(f"{address}: {NO_ANSWER}")
            return await request(client, address, command, seconds)

        monkeypatch.setattr(client, "request", answer)


@asynccontextmanager
async def visit(
    running: RunningBroker, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[Site, SlowServers]]:
    async with site(running.name_server, broker_seconds=PATIENCE) as visitor:
        yield visitor, SlowServers(visitor, monkeypatch)


@pytest.mark.parametrize(("path", "missing"), PAGES)
def test_a_page_says_what_is_missing(
    running: RunningBroker, monkeypatch: pytest.MonkeyPatch, path: str, missing: str
) -> None:
    async def look() -> None:
        async with visit(running, monkeypatch) as (visitor, slow):
            slow.addresses = {running.address}
            page = await visitor.get(path.format(address=running.address))
            assert page.status_code == 200, words(page)
            assert missing in words(page)

    asyncio.run(look())


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("/topics/topic?topic=slow", "7 messages stored"),
        ("/groups/group?group=slowed", "2 messages not consumed"),
        ("/cluster/broker?address={address}", "brokerVersionDesc"),
    ],
)
def test_a_page_shows_what_it_knew(
    running: RunningBroker, monkeypatch: pytest.MonkeyPatch, path: str, shown: str
) -> None:
    path = path.format(address=running.address)

    async def look() -> None:
        async with visit(running, monkeypatch) as (visitor, slow):
            before = await visitor.get(path)
            assert shown in words(before)
            assert "This page shows what was known" not in words(before)
            slow.addresses = {running.address}
            grow_old(visitor, 40)
            page = await visitor.get(path)
            assert page.status_code == 200
            assert shown in words(page)
            reason = f"{running.address}: {NO_ANSWER}"
            assert f"{reason}. This page shows what was known 40 s ago." in words(page)

    asyncio.run(look())


def grow_old(visitor: Site, seconds: float) -> None:
    """Let everything that a console knows of the cluster be so many seconds older."""
    values = visitor.console.view(None).kept._values
    for key, (at, value) in [*values.items()]:
        values[key] = (at - seconds, value)


@pytest.mark.parametrize("path", [path for path, _ in PAGES])
def test_pages_know_brokers_and_topics_while_the_name_server_is_slow(
    running: RunningBroker, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    path = path.format(address=running.address)

    async def look() -> None:
        async with visit(running, monkeypatch) as (visitor, slow):
            for known in ("/topics", "/topics/topic?topic=slow", path):
                assert (await visitor.get(known)).status_code == 200
            slow.addresses = {running.name_server}
            grow_old(visitor, 40)
            page = await visitor.get(path)
            assert page.status_code == 200, words(page)
            assert f"{running.name_server}: no answer" in words(page)

    asyncio.run(look())


def test_an_unknown_cluster_says_what_to_check(
    running: RunningBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def look() -> None:
        async with visit(running, monkeypatch) as (visitor, slow):
            slow.addresses = {running.name_server}
            page = await visitor.get("/cluster")
            assert page.status_code == 502
            assert f"do the name servers ({running.name_server}) and brokers run?" in words(page)

    asyncio.run(look())


def test_the_list_of_groups_does_not_wait_for_lags(
    running: RunningBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def look() -> None:
        async with visit(running, monkeypatch) as (visitor, slow):
            slow.addresses = {running.address}
            slow.codes, slow.is_waiting = {RequestCode.GET_BROKER_CONSUME_STATS}, True
            page = await visitor.get("/groups?q=slowed")
            assert UNKNOWN in words(page)
            assert "Lags are being counted" in words(page)
            other = await visitor.get("/groups/group?group=slowed")
            assert "2 messages not consumed" in words(other)

    asyncio.run(look())


def test_the_list_of_groups_says_why_it_has_no_lags(
    running: RunningBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def look() -> None:
        async with visit(running, monkeypatch) as (visitor, slow):
            slow.addresses = {running.address}
            slow.codes = {RequestCode.GET_BROKER_CONSUME_STATS}
            page = await visitor.get("/groups?q=slowed")
            assert page.status_code == 200
            assert UNKNOWN in words(page)
            assert f"Lags are missing: {running.address}: no answer" in words(page)

    monkeypatch.setattr("mqlake.console.pages.groups._PATIENCE", PATIENCE)
    asyncio.run(look())


@pytest.mark.parametrize(
    ("path", "form", "code"),
    [
        (
            "/groups/save",
            {"group": "slowed", "cluster": "DefaultCluster", "retries": "3", "queues": "1"},
            RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG,
        ),
        (
            "/topics/save",
            {
                "topic": "slow",
                "cluster": "DefaultCluster",
                "read": "9",
                "write": "9",
                "permission": "6",
            },
            RequestCode.GET_ALL_TOPIC_CONFIG,
        ),
    ],
)
def test_a_change_does_not_overwrite_settings_that_are_not_known(
    running: RunningBroker,
    monkeypatch: pytest.MonkeyPatch,
    path: str,
    form: dict[str, str],
    code: RequestCode,
) -> None:
    async def change() -> None:
        async with visit(running, monkeypatch) as (visitor, slow):
            slow.addresses, slow.codes = {running.address}, {code}
            page = await visitor.post(path, form)
            assert page.status_code == 502
            assert NO_ANSWER in words(page)

    async def look() -> None:
        async with site(running.name_server, broker_seconds=PATIENCE) as visitor:
            view = visitor.console.view(None)
            assert (await config_of(view, "slowed"))["broker-a"].retry_max_times == 16
            assert (await tables(view)).by_broker["broker-a"]["slow"].read_queue_nums != 9

    asyncio.run(change())
    asyncio.run(look())
