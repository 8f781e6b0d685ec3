"""What a cluster has while its console is looked at: topics, groups, clients, waiting messages.

Everything that people can choose freely has markup in it, which sets `window.executed` if a page
executes it.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Self

from mqlake.admin import groups, topics
from mqlake.admin.admin import Admin
from mqlake.client import (
    ConsumedMessage,
    Consumer,
    ConsumerSettings,
    Message,
    Producer,
    SimpleConsumer,
    TransactionState,
)
from mqlake.formats.config.subscription_group import SubscriptionGroup
from mqlake.formats.config.topics import Topic
from tests.console.messages.parcels import parcel

CLUSTER = "DefaultCluster"
ORDERS, HOSTILE, LATER, POPPED, PAID = "Orders", "Hostile", "Later", "Popped", "Paid"
PARCELS, TRACED = "Parcels", "Traced"
BILLING, IDLE, POPPING, SHIPPING = "billing", "archive-job", "poppers", "shipping"
TRACING, TRACED_KEY = "tracing", "parcel-traced"
DEAD, HANDLED = "parcel-dead", "parcel-handled"
KEY = "order-4711"
FIRST = ConsumerSettings(consume_from="first")
"""A group that begins at the end would miss what is sent before its first pull."""

HOSTILE_TEXTS = (
    "<script>window.executed='script'</script>",
    "</td></tr></table><script>window.executed='closed'</script>",
    "<img src=x onerror=\"window.executed='img'\">",
    "\"><svg onload=window.executed='svg'>",
    "' onmouseover='window.executed=1' x='",
    '" autofocus onfocus="window.executed=\'focus\'" x="',
    "javascript:window.executed='url'",
    "<a href=\"javascript:window.executed='link'\">x</a>",
    "<iframe srcdoc=\"<script>parent.executed='frame'</script>\"></iframe>",
    "<body onload=window.executed='body'>",
    "<style>@import 'http://example.org/x.css'</style>",
    '<meta http-equiv=refresh content="0;url=http://example.org/">',
    "<base href=http://example.org/>",
    "<form action=http://example.org/><button>go</button></form>",
    "<details open ontoggle=window.executed='details'>",
    "<input hx-get=http://example.org/ hx-trigger=load>",
    "<div hx-on:load=window.executed='htmx'></div>",
    "{{ 7 * 7 }}{% raw %}",
    "{{ ''.__class__.__mro__ }}",
    "${window.executed='template'}",
    "<!--<script>window.executed='comment'</script>-->",
    "<![CDATA[<script>window.executed='cdata'</script>]]>",
    "<noscript><p title=\"</noscript><script>window.executed='noscript'</script>\">",
    "<math><mtext></table><script>window.executed='math'</script>",
    "\u202etxt.exe\u202c \u0007\u001b[31m\u0085\u2028\u2029",
    "\ufeff<scr\u0000ipt>window.executed='null'</script>",
    "\u04cfogin \U0001f600 مرحبا שלום",
    "&lt;script&gt;window.executed=1&lt;/script&gt;",
    "%3Cscript%3Ewindow.executed=1%3C/script%3E",
    "';window.executed='sql'--",
    "A" * 5000,
)


class Content:
    """Clients of a cluster that stay connected until `close`.

    Attributes:
        handled: the keys of the messages that the handler of SHIPPING was given.
    """

    def __init__(self, names: str) -> None:
        self._names = names
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="content")
        self._open: list[Any] = []
        self.handled: list[str] = []
        self._running: asyncio.Task[None] | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        self._run(self._fill())
        return self

    def __exit__(self, *failure: object) -> None:
        try:
            self._run(self._close())
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _opened(self, client: Any) -> Any:
        self._open.append(await client.__aenter__())
        return client

    async def _close(self) -> None:
        if self._running is not None:
            self._running.cancel()
            with suppress(asyncio.CancelledError):
                await self._running
        for client in reversed(self._open):
            await client.__aexit__(None, None, None)

    async def _fill(self) -> None:
        async with Admin(self._names) as admin:
            for name in (ORDERS, HOSTILE, LATER, POPPED, PAID, PARCELS, TRACED):
                topic = Topic(topic_name=name, read_queue_nums=4, write_queue_nums=4)
                await topics.update(admin, topic, CLUSTER, None)
            for name in (BILLING, IDLE, POPPING, SHIPPING, TRACING):
                await groups.update(admin, SubscriptionGroup(group_name=name), CLUSTER, None)
        check = _unknown
        producer = await self._opened(Producer(self._names, group="shop", check=check))
        await self._orders(producer)
        await self._hostile(producer)
        await self._waiting(producer)
        await self._members()
        await self._parcels(producer)
        await self._traced()

    async def _orders(self, producer: Producer) -> None:
        await producer.send_many(
            [
                Message(
                    topic=ORDERS,
                    body=b'{"order": %d, "total": %d.5, "lines": [1, 2]}' % (4700 + number, number),
                    keys=f"order-{4700 + number}",
                    tags="paid" if number % 2 else "open",
                )
                for number in range(200)
            ]
        )

    async def _hostile(self, producer: Producer) -> None:
        for text in HOSTILE_TEXTS:
            clean = text.replace("\x01", "").replace("\x02", "")
            short = clean.replace("\0", "")[:200]
            message = Message(
                topic=HOSTILE,
                body=text.encode(),
                keys=short.replace(" ", "_") or "x",
                tags=short[:60].replace("|", "") or "x",
                properties={"note": short, "x" + short[:40].replace("\0", ""): "value"},
            )
            await producer.send(message)
        await producer.send(Message(topic=HOSTILE, body=bytes(range(256)), keys="binary"))

    async def _waiting(self, producer: Producer) -> None:
        later = int(time.time() * 1000) + 7_200_000
        for number, text in enumerate(HOSTILE_TEXTS[:5]):
            key = text.replace(" ", "_")
            await producer.send(
                Message(topic=LATER, body=b"x", keys=key, deliver_at=later + 1000 * number)
            )
        await producer.send(Message(topic=LATER, body=b"x", keys="recall-me", deliver_at=later))
        await producer.send(Message(topic=LATER, body=b"x", keys="by-level", delay_level=18))
        await producer.transaction(Message(topic=PAID, body=b"x", keys="half-open"))
        await producer.send(Message(topic=POPPED, body=b"x", keys="popped"))

    async def _parcels(self, producer: Producer) -> None:
        """Send a message that becomes a dead letter, and one that a handler is given."""
        consumer = await self._opened(Consumer(self._names, SHIPPING, PARCELS, settings=FIRST))
        await producer.send(Message(topic=PARCELS, body=b"x", keys=DEAD))
        message = None
        while message is None:
            message = await consumer.receive(120)
        assert await message.retry_later(-1)

        is_handled = asyncio.Event()

        async def handle(message: ConsumedMessage) -> None:
            self.handled.append(" ".join(message.keys))
            is_handled.set()

        self._running = asyncio.create_task(consumer.run(handle))
        await producer.send(Message(topic=PARCELS, body=b"x", keys=HANDLED))
        await is_handled.wait()

    async def _traced(self) -> None:
        """Send and consume a message whose clients report it; its body is of Protobuf."""
        body = parcel(id=4711, note=["<script>window.executed='schema'</script>"], state=1)
        async with Producer(self._names, group="tracing-shop", trace=True) as producer:
            await producer.send(Message(topic=TRACED, body=body, keys=TRACED_KEY))
        settings = ConsumerSettings(consume_from="first", trace=True)
        async with Consumer(self._names, TRACING, TRACED, settings=settings) as consumer:
            message = None
            while message is None:
                message = await consumer.receive(120)
            await message.ack()

    async def _members(self) -> None:
        member = Consumer(
            self._names,
            BILLING,
            ORDERS,
            settings=FIRST,
            instance="<script>window.executed='client'</script>",
        )
        consumer = await self._opened(member)
        for _ in range(20):
            message = await consumer.receive(120)
            assert message is not None
            await message.ack()
        await consumer.commit()
        popping = SimpleConsumer(self._names, POPPING, POPPED, invisible=3600.0, is_from_first=True)
        await self._opened(popping)
        while not await popping.receive(1):
            pass


async def _unknown(message: object) -> TransactionState:
    return TransactionState.UNKNOWN
