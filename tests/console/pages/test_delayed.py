from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable

from mqlake.admin import brokers
from mqlake.client import Message
from mqlake.testing.running_broker import RunningBroker
from tests.console.site import Site, site, words
from tests.until import until

Work = Callable[[Site], Awaitable[None]]


def visit(
    running: RunningBroker, work: Callable[[Site], Awaitable[None]], **options: object
) -> None:
    async def run() -> None:
        async with site(running.name_server, **options) as visitor:
            await work(visitor)

    asyncio.run(run())


def in_an_hour() -> int:
    return int(time.time() * 1000) + 3_600_000


async def shown(visitor: Site, path: str, text: str) -> str:
    """Return the words of a page once they have a text."""
    found = ""

    async def has_text() -> bool:
        nonlocal found
        visitor.console.view(None).kept.forget()
        found = words(await visitor.get(path))
        return text in found

    await until(has_text)
    return found


def test_shows_messages_with_a_delay_level_and_with_a_time(running: RunningBroker) -> None:
    with running.producer() as producer:
        producer.send(Message(topic="Later", body=b"x", keys="by-level", delay_level=18))
        producer.send(
            Message(
                topic="Later",
                body=b"x",
                keys="by-time",
                deliver_at=in_an_hour(),
            )
        )

    async def work(visitor: Site) -> None:
        text = await shown(visitor, "/delayed?topic=Later", "by-time")
        assert "delay level 18" in text
        assert "its delivery time" in text
        assert "No message waits" in await shown(visitor, "/delayed?topic=Other", "No message")

    visit(running, work)


def test_a_message_with_a_time_is_recalled(running: RunningBroker) -> None:
    with running.producer() as producer:
        producer.send(
            Message(
                topic="Recalled",
                body=b"x",
                keys="wrong",
                deliver_at=in_an_hour(),
            )
        )

    async def work(visitor: Site) -> None:
        text = await shown(visitor, "/delayed?topic=Recalled", "wrong")
        assert "its setting recallMessageEnable is false" in text
        admin = visitor.console.view(None).admin
        await brokers.update_config(admin, "recallMessageEnable", "true", None, "broker-a")
        await shown(visitor, "/delayed?topic=Recalled", "Recall")
        page = (await visitor.get("/delayed?topic=Recalled")).text
        (handle,) = re.findall(r'name="handle" value="([^"]+)"', page)
        fields = {"broker": "broker-a", "topic": "Recalled", "handle": handle}
        assert "was recalled" in words(await visitor.post("/delayed/recall", fields))
        await shown(visitor, "/delayed?topic=Recalled", "No message waits")
        wrong = {**fields, "handle": "wrong"}
        assert "handle is invalid" in words(await visitor.post("/delayed/recall", wrong))

    visit(running, work)


def test_a_read_only_console_recalls_nothing(running: RunningBroker) -> None:
    async def work(visitor: Site) -> None:
        fields = {"broker": "broker-a", "topic": "T", "handle": "x"}
        assert (await visitor.post("/delayed/recall", fields)).status_code == 403

    visit(running, work, read_only=True)


def test_an_unknown_broker_is_told(running: RunningBroker) -> None:
    async def work(visitor: Site) -> None:
        assert (await visitor.get("/delayed/half?broker=none")).status_code == 404

    visit(running, work)


def test_other_kinds_are_empty_without_such_messages(running: RunningBroker) -> None:
    async def work(visitor: Site) -> None:
        assert "No transaction is open" in words(await visitor.get("/delayed/half"))
        assert "No popped message" in words(await visitor.get("/delayed/popped"))

    visit(running, work)


def test_a_store_directory_is_read_without_its_broker(running: RunningBroker) -> None:
    with running.producer() as producer:
        producer.send(Message(topic="OnDisk", body=b"x", keys="from-disk", deliver_at=in_an_hour()))

    async def work(visitor: Site) -> None:
        path = f"/delayed?topic=OnDisk&store={running.store}"
        assert "from-disk" in await shown(visitor, path, "from-disk")
        assert (await visitor.get("/delayed?store=/etc")).status_code == 404

    visit(running, work, stores=(running.store,))
