"""A broker that goes through an event, and a consumer that says what it gets afterwards."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Self

from mqlake.broker.pop.check_points import REVIVE_GROUP
from mqlake.formats import config, fastjson
from mqlake.formats.config import ConsumerOffsets
from mqlake.formats.config.subscription_group import SubscriptionGroup
from mqlake.protocol.body import encode_body
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.headers.admin import DeleteGroupHeader, TopicNameHeader
from mqlake.protocol.headers.pop import AckHeader, ChangeInvisibleTimeHeader
from mqlake.protocol.retry_topics import marked
from mqlake.store.settings import BrokerRole
from mqlake.testing.advanced_clock import AdvancedClock
from tests.broker.admin.asking import done, wanted
from tests.broker.pop.popping import Popped, pop
from tests.broker.running import Running, running, to
from tests.broker.slave.pairs import switch

QUEUES = 2
OUT = 60_000
"""Milliseconds for which popped messages are invisible."""
STAY = 10
"""Seconds after which a check point is stored (`popCkStayBufferTime`)."""


class World:
    """One store and the broker on it. `async with World(path) as world:` runs the first one."""

    def __init__(self, path: Path) -> None:
        self._path, self._number = path, 0
        self._settings: dict[str, object] = {}
        self._stack = AsyncExitStack()
        self.clock = AdvancedClock()

    @property
    def broker(self) -> Running:
        return self._broker

    async def __aenter__(self) -> Self:
        await self._start()
        return self

    async def __aexit__(self, *failure: object) -> None:
        await self._stack.aclose()

    @property
    def _store(self) -> Path:
        return self._path / str(self._number)

    async def _start(self) -> None:
        self._stack = AsyncExitStack()
        broker = running(self._store, clock=self.clock, **self._settings)
        self._broker = await self._stack.enter_async_context(broker)

    async def stop(self) -> Path:
        """Stop the broker cleanly; return the directory of its store."""
        await self._stack.aclose()
        return self._store

    async def restart(self, **settings: object) -> None:
        """Stop the broker cleanly, and start it with other settings."""
        await self.stop()
        self._settings |= settings
        await self._start()

    async def demote_and_promote(self) -> None:
        """Make the broker a slave, and then a master again."""
        switch(self.broker, BrokerRole.SLAVE, 1)
        await asyncio.sleep(0)
        switch(self.broker, BrokerRole.ASYNC_MASTER, 0)

    async def restore_older_log(self) -> None:
        """Stop the broker, and start it as on a log that is older than the revive offsets."""
        await self._stack.aclose()
        path = self._store / "config" / ConsumerOffsets.file_name
        table = config.decode(path.read_bytes(), ConsumerOffsets).offset_table
        for key, queues in table.items():
            if key.endswith(f"@{REVIVE_GROUP}"):
                table[key] = dict.fromkeys(queues, 1_000_000)
        path.write_text(fastjson.dumps({"offsetTable": table}))
        await self._start()

    async def kill(self) -> None:
        """Continue as after `kill -9`: on the files as they are now."""
        before = self._store
        self._number += 1
        unfinished = shutil.ignore_patterns("*.tmp")
        await asyncio.to_thread(shutil.copytree, before, self._store, ignore=unfinished)
        await self._stack.aclose()
        await self._start()

    # Topics and groups

    async def create(self, topic: str, group: str, queues: int = QUEUES) -> None:
        header = wanted(topic, read_queue_nums=queues, write_queue_nums=queues)
        await done(self.broker, RequestCode.UPDATE_AND_CREATE_TOPIC, header)
        body = encode_body(SubscriptionGroup(group_name=group))
        await done(self.broker, RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, None, body)

    async def delete_topic(self, topic: str) -> None:
        header = TopicNameHeader(topic=topic)
        await done(self.broker, RequestCode.DELETE_TOPIC_IN_BROKER, header)

    async def delete_group(self, group: str, *, clean_offset: bool) -> None:
        header = DeleteGroupHeader(group_name=group, clean_offset=clean_offset)
        await done(self.broker, RequestCode.DELETE_SUBSCRIPTIONGROUP, header)

    # Messages

    async def send(self, topic: str, *bodies: str, queue_id: int = QUEUES - 1) -> None:
        for body in bodies:
            answer = await self.broker.send(to(topic, queue_id=queue_id), body.encode())
            assert answer.code == ResponseCode.SUCCESS, answer.remark
        self.broker.parts.store.core.sync_log()

    async def pop(self, topic: str, group: str, **fields: object) -> list[Popped]:
        """Pop messages, which become invisible for `OUT`."""
        known = {"topic": topic, "consumer_group": group, "invisible_time": OUT}
        return await pop(self.broker, **(known | fields))

    async def acknowledge(self, topic: str, group: str, popped: Popped) -> None:
        header = AckHeader(**_receipt(topic, group, popped))
        assert (await self.broker.ask(RequestCode.ACK_MESSAGE, header)).code == 0

    async def change(self, topic: str, group: str, popped: Popped, milliseconds: int) -> None:
        fields = {**_receipt(topic, group, popped), "invisible_time": milliseconds}
        header = ChangeInvisibleTimeHeader(**fields)
        code = RequestCode.CHANGE_MESSAGE_INVISIBLETIME
        assert (await self.broker.ask(code, header)).code == 0

    async def settle(self) -> None:
        """Let the broker do what it does every second, until two of its rounds have passed."""
        self.broker.parts.store.core.sync_log()
        services = [each for each in self.broker.parts.repeating if "PopConsumption" in each.name]
        for _ in range(2):
            self.clock.advance(1)
            await asyncio.sleep(0.05)
            for service in services:
                service.start()

    async def later(self, seconds: float) -> None:
        """Let time pass, and the broker do what is due."""
        self.clock.advance(seconds)
        for _ in range(3):
            await self.settle()

    async def received(
        self, topic: str, group: str, expected: Sequence[str], **fields: object
    ) -> set[str]:
        """Return everything that a group gets; at least what is expected must come in time.

        Whatever is not expected has several times its invisible time to come, too.
        """
        found: set[str] = set()
        rounds, most = 0, 60
        while rounds < 3 or not found >= set(expected):
            most -= 1
            if not most:
                break
            taken = await self.pop(topic, group, poll_time=0, **fields)
            for each in taken:
                found.add(each.body)
                await self.acknowledge(topic, group, each)
            if not taken:
                rounds += 1
                await self.later(OUT / 1000)
        return found


def _receipt(topic: str, group: str, popped: Popped) -> dict[str, object]:
    return {
        "consumer_group": group,
        "topic": marked(popped.receipt.split(" ")[4], topic, group),
        "queue_id": popped.record.queue_id,
        "extra_info": popped.receipt,
        "offset": popped.record.queue_offset,
    }
