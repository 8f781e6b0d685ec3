"""Who changes topics, groups and the broker while they are in use."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable

from mqlake.formats.config.subscription_group import SubscriptionGroup
from mqlake.protocol.body import encode_body
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.headers.admin import DeleteGroupHeader, TopicNameHeader
from mqlake.store.settings import BrokerRole
from tests.broker.admin.asking import wanted
from tests.broker.in_use.place import Place
from tests.broker.in_use.promises import Action, Promises
from tests.broker.in_use.users import PARENT, QUEUES, TOPICS, User
from tests.broker.lite import lites
from tests.broker.slave.pairs import switch

GROUPS = ("one", "two")
LITE_GROUP = lites.GROUP
ALL_GROUPS = (*GROUPS, LITE_GROUP)
READERS = [f"{kind}{topic}" for kind in ("readers", "fresh") for topic in TOPICS]
_LITE = "+message.type=LITE,+lite.topic.expiration=60"


class Administrator(User):
    """Makes, changes and deletes topics and groups; stops and kills the broker."""

    def __init__(self, place: Place, promises: Promises, dice: random.Random) -> None:
        super().__init__(place, promises, dice)
        self._acts: tuple[Callable[[], Awaitable[None]], ...] = (
            *[self._delete_topic, self._remake_topic, self._remake_group] * 4,
            *[self._delete_group, self._change_queues, self._forbid, self._clean] * 2,
            *[self._restart, self._kill, self._demote_and_promote],
        )

    async def act(self) -> None:
        act = self.dice.choice(self._acts)
        self.promises.note(f" ! {act.__name__}")
        await act()
        self.promises.note(f" ! {act.__name__} is done")
        await asyncio.sleep(self.dice.expovariate(1))

    async def make_all(self) -> None:
        """Make all topics and groups, with all queues and permissions."""
        for topic in TOPICS:
            await self._make_topic(topic)
        await self._make_topic(PARENT)
        for group in (*ALL_GROUPS, *READERS):
            await self._make_group(group)

    async def _delete_topic(self) -> None:
        topic = self.dice.choice((*TOPICS, PARENT))
        self.promises.note(f" ! deletes {topic}")
        deletion = Action(self.promises.tick())
        self.promises.deleted[topic].append(deletion)
        answer = await self.connection.ask(
            RequestCode.DELETE_TOPIC_IN_BROKER, TopicNameHeader(topic=topic)
        )
        deletion.over = self.promises.tick()
        if answer is not None and answer.code == ResponseCode.SUCCESS:
            deletion.end = deletion.over
        if topic == PARENT:
            await self._make_topic(PARENT)

    async def _remake_topic(self) -> None:
        await self._make_topic(self.dice.choice(TOPICS))

    async def _change_queues(self) -> None:
        await self._make_topic(self.dice.choice(TOPICS), self.dice.randint(1, QUEUES))

    async def _forbid(self) -> None:
        await self._make_topic(self.dice.choice(TOPICS), perm=self.dice.choice((2, 4)))

    async def _make_topic(self, topic: str, queues: int = QUEUES, perm: int = 6) -> None:
        header = wanted(
            topic,
            read_queue_nums=queues,
            write_queue_nums=queues,
            perm=perm,
            attributes=_LITE if topic == PARENT else None,
        )
        await self.connection.ask(RequestCode.UPDATE_AND_CREATE_TOPIC, header)

    async def _remake_group(self) -> None:
        await self._make_group(self.dice.choice(ALL_GROUPS))

    async def _make_group(self, group: str) -> None:
        attributes = {"+lite.bind.topic": PARENT} if group == LITE_GROUP else {}
        made = SubscriptionGroup(group, retry_max_times=1000, attributes=attributes)
        await self.connection.ask(
            RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=encode_body(made)
        )

    async def _delete_group(self) -> None:
        group = self.dice.choice(ALL_GROUPS)
        self.promises.note(f" ! deletes {group}")
        self.promises.begin_anew(group)
        header = DeleteGroupHeader(group_name=group, clean_offset=True)
        await self.connection.ask(RequestCode.DELETE_SUBSCRIPTIONGROUP, header)
        self.promises.begin_anew(group)

    async def _clean(self) -> None:
        code = self.dice.choice(
            (RequestCode.CLEAN_UNUSED_TOPIC, RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE)
        )
        await self.connection.ask(code)

    async def _restart(self) -> None:
        await self.place.restart(reviveQueueNum=self.dice.randint(1, 4))

    async def _kill(self) -> None:
        self.promises.begin_again(*ALL_GROUPS)
        await self.place.kill()
        self.promises.begin_again(*ALL_GROUPS)

    async def _demote_and_promote(self) -> None:
        broker = await self.place.broker()
        self.promises.begin_again(*ALL_GROUPS)
        switch(broker, BrokerRole.SLAVE, 1)
        await asyncio.sleep(self.dice.expovariate(1))
        switch(broker, BrokerRole.ASYNC_MASTER, 0)
        self.promises.begin_again(*ALL_GROUPS)
