"""One broker that hangs: pages, searches and changes show the others, and say what is missing."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from mqlake.testing.running_broker import RunningBroker
from tests.console.pages.test_groups import consume, send
from tests.console.silent_broker import silent_broker
from tests.console.site import Site, site, words

SAYS = "broker-b did not answer:"


@pytest.fixture(scope="module", autouse=True)
def content(running: RunningBroker) -> None:
    send(running, "half-there", 5)
    consume(running, "halved", "half-there", 5)
    send(running, "half-there", 2)


@asynccontextmanager
async def visit(running: RunningBroker) -> AsyncIterator[Site]:
    """Yield a visitor of a console for two brokers, of which broker-b hangs."""
    names = running.name_server
    async with (
        silent_broker(names, "half-there", "%RETRY%halved"),
        site(names, broker_seconds=0.5) as visitor,
    ):
        yield visitor


@pytest.mark.parametrize(
    ("path", "shown", "missing"),
    [
        ("/cluster", "broker-a", "): It does not answer."),
        ("/topics", "half-there", f"{SAYS} its topics' settings are missing"),
        ("/topics/topic?topic=half-there", "broker-a 0", f"{SAYS} its queues and rates"),
        ("/groups", "halved", f"{SAYS} its groups are missing"),
        ("/groups/group?group=halved", "2 messages not consumed", f"{SAYS} its queues are missing"),
        ("/messages?topic=half-there", "7 messages", f"{SAYS} its queues were not searched"),
        ("/messages?topic=half-there&by=key&key=x", "", f"{SAYS} its messages were not searched"),
        ("/messages/tail?topic=half-there", "7", f"{SAYS} its messages are missing"),
        ("/delayed?broker=broker-a", "No message waits", ""),
        ("/delayed?broker=broker-b", "broker-a", f"{SAYS} its messages are missing"),
    ],
)
def test_pages_show_the_others(running: RunningBroker, path: str, shown: str, missing: str) -> None:
    async def look() -> None:
        async with visit(running) as visitor:
            page = await visitor.get(path)
            assert page.status_code == 200, words(page)
            assert missing in words(page)
            assert shown.replace("7 messages", "") in words(page)

    asyncio.run(look())


def test_the_page_of_a_message_shows_the_others(running: RunningBroker) -> None:
    async def look() -> None:
        async with visit(running) as visitor:
            path = "/messages/message?topic=half-there&broker=broker-a&queue={}&offset=0"
            pages = [await visitor.get(path.format(queue)) for queue in range(4)]
            text = next(words(each) for each in pages if each.status_code == 200)
            assert "halved has consumed it" in text
            assert f"{SAYS} its groups may be missing" in text

    asyncio.run(look())


def test_only_the_first_page_waits(running: RunningBroker) -> None:
    async def look() -> None:
        async with visit(running) as visitor:
            path = "/topics/topic?topic=half-there"
            await visitor.get(path)
            admin = visitor.console.view(None).admin
            admin._seconds = 1e9  # type: ignore[attr-defined]  # A page that waits has no end.
            assert SAYS in words(await visitor.get(path))

    asyncio.run(look())


@pytest.mark.parametrize(
    ("path", "form"),
    [
        ("/groups/reset", {"group": "halved", "topic": "half-there", "time": "0"}),
        ("/groups/skip", {"group": "halved", "topic": "half-there"}),
        ("/groups/copy", {"group": "halved", "target": "halved", "offline": "1"}),
        (
            "/groups/save",
            {"group": "halved", "cluster": "DefaultCluster", "retries": "3", "queues": "1"},
        ),
        (
            "/topics/save",
            {
                "topic": "half-there",
                "cluster": "DefaultCluster",
                "read": "4",
                "write": "4",
                "permission": "6",
            },
        ),
    ],
)
def test_a_change_says_which_brokers_were_changed(
    running: RunningBroker,
    caplog: pytest.LogCaptureFixture,
    path: str,
    form: dict[str, str],
) -> None:
    async def change() -> None:
        async with visit(running) as visitor:
            await visitor.get("/cluster")  # The console knows that broker-b is silent.
            page = await visitor.post(path, form)
            assert page.status_code == 502
            text = words(page)
            assert "Changed on some brokers only" in text
            assert "Changed on broker-a; broker-b did not answer, so it may or may not" in text

    with caplog.at_level(logging.INFO):
        asyncio.run(change())
    assert 'result="partly done: changed on broker-a; broker-b did not answer' in caplog.text
