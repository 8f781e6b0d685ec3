"""Producers and consumers of a run."""

from __future__ import annotations

import asyncio
import random
from abc import ABC, abstractmethod
from typing import ClassVar

from mqlake.formats.message_id import decode_message_id
from mqlake.formats.sys_flag import TRANSACTION_COMMIT, TRANSACTION_PREPARED, TRANSACTION_ROLLBACK
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.headers.pop import AckHeader, ChangeInvisibleTimeHeader
from mqlake.protocol.headers.pull import HAS_SUBSCRIPTION, PullAnswerHeader, PullHeader
from mqlake.protocol.headers.send import SendMessageResponseHeader
from mqlake.protocol.headers.transactions import EndTransactionHeader
from tests.broker.answered_records import answered_records
from tests.broker.in_use.place import Connection, Place
from tests.broker.in_use.promises import Promises, Sent
from tests.broker.lite import lites
from tests.broker.pop import popping
from tests.broker.pop.popping import Popped
from tests.broker.running import to

QUEUES = 3
TOPICS = ("Orders", "Bills", "Ships")
PARENT, LITES = lites.TOPIC, ("one", "two", "three", "four")
MARGIN = 2.0
"""Seconds before a message is visible again in which no acknowledgement is sent."""


class User(ABC):
    """A client that does one thing after another until it is told to stop."""

    def __init__(self, place: Place, promises: Promises, dice: random.Random) -> None:
        self.place, self.promises, self.dice = place, promises, dice
        self.connection = Connection(place)

    async def work(self, until: float) -> None:
        """Act until the loop's time is `until`."""
        loop = asyncio.get_running_loop()
        while loop.time() < until:
            await self.act()
            await asyncio.sleep(self.dice.expovariate(3))

    @abstractmethod
    async def act(self) -> None:
        """Do one thing."""


class Producer(User):
    """Sends messages of every kind."""

    _KINDS: ClassVar = ("plain", "plain", "level", "timer", "transaction", "lite")

    async def act(self) -> None:
        kind = self.dice.choice(self._KINDS)
        topic = PARENT if kind == "lite" else self.dice.choice(TOPICS)
        begin = self.promises.tick()
        body = f"{kind}{begin}"
        message = self.promises.sent[body] = Sent(begin, topic=topic)
        properties = {
            "level": f"DELAY\x01{self.dice.randint(1, 3)}\x02",
            "timer": f"TIMER_DELAY_SEC\x01{self.dice.randint(1, 15)}\x02",
            "lite": f"__LITE_TOPIC\x01{self.dice.choice(LITES)}\x02",
            "transaction": "TRAN_MSG\x01true\x02PGROUP\x01producers\x02",
        }.get(kind, "")
        header = to(
            topic,
            queue_id=0 if kind == "lite" else self.dice.randrange(QUEUES),
            properties=f"UNIQ_KEY\x01{body}\x02{properties}",
            sys_flag=TRANSACTION_PREPARED if kind == "transaction" else 0,
        )
        answer = await self.connection.ask(RequestCode.SEND_MESSAGE_V2, header, body.encode())
        if answer is None or answer.code != ResponseCode.SUCCESS:
            return
        if kind == "transaction" and not await self._end(answer.header(SendMessageResponseHeader)):
            return
        message.end = self.promises.tick()
        self.promises.note(f"sent {body} to {topic}")

    async def _end(self, half: SendMessageResponseHeader) -> bool:
        """End a transaction; return whether it is committed."""
        await asyncio.sleep(self.dice.expovariate(1))
        is_committed = self.dice.random() < 0.8
        _, offset = decode_message_id(half.msg_id)
        header = EndTransactionHeader(
            producer_group="producers",
            tran_state_table_offset=half.queue_offset,
            commit_log_offset=offset,
            commit_or_rollback=TRANSACTION_COMMIT if is_committed else TRANSACTION_ROLLBACK,
        )
        answer = await self.connection.ask(RequestCode.END_TRANSACTION, header)
        return is_committed and answer is not None and answer.code == ResponseCode.SUCCESS


class PopConsumer(User):
    """Pops, and acknowledges most of what it gets."""

    def __init__(
        self, place: Place, promises: Promises, dice: random.Random, topic: str, group: str
    ) -> None:
        super().__init__(place, promises, dice)
        self.topic, self.group = topic, group
        self._ages = dict[str, int]()

    async def act(self) -> None:
        seconds = self.dice.randint(5, 15)
        poll = self.dice.choice((0, 0, 2000))
        for each in await self.pop(seconds, poll):
            await self._use(each, seconds)

    async def pop(self, seconds: int, poll: int = 0) -> list[Popped]:
        """Return messages, which are invisible for some seconds."""
        broker = await self.place.broker()
        asked, age = self.promises.tick(), self.promises.age(self.group)
        header = popping.header(
            topic=self.topic,
            consumer_group=self.group,
            invisible_time=seconds * 1000,
            poll_time=poll,
            born_time=broker.state.store.clock.milliseconds(),
        )
        answer = await self.connection.ask(RequestCode.POP_MESSAGE, header)
        if answer is None or answer.code != ResponseCode.SUCCESS:
            return []
        found = popping.read(answer)
        for each in found:
            self._ages[each.receipt] = age
            self.promises.delivered(self.group, each.body, asked)
        return found

    async def _use(self, popped: Popped, seconds: int) -> None:
        drawn = self.dice.random()
        if drawn < 0.15:
            return
        is_new = self._ages[popped.receipt] == self.promises.age(self.group)
        if drawn < 0.3 and is_new:  # An old receipt's change would be taken for the new group's.
            await self._ask(RequestCode.CHANGE_MESSAGE_INVISIBLETIME, popped, invisible_time=5000)
        elif drawn < 0.4:
            await asyncio.sleep(self.dice.uniform(0, seconds - MARGIN))
            await self.acknowledge(popped)
        else:
            await self.acknowledge(popped)

    async def acknowledge(self, popped: Popped) -> None:
        """Acknowledge a message, if that is still in time."""
        broker = await self.place.broker()
        start, out = (int(each) for each in popped.receipt.split(" ")[1:3])
        left = start + out - broker.state.store.clock.milliseconds()
        answer = await self._ask(RequestCode.ACK_MESSAGE, popped)
        if answer == ResponseCode.SUCCESS and left > MARGIN * 1000:
            self.promises.acknowledge(self.group, popped.body, self._ages[popped.receipt])

    async def _ask(self, code: int, popped: Popped, **fields: object) -> int | None:
        known = popping.receipt_fields(self.topic, self.group, popped)
        kind = AckHeader if code == RequestCode.ACK_MESSAGE else ChangeInvisibleTimeHeader
        answer = await self.connection.ask(code, kind(**(known | fields)))  # type: ignore[arg-type]
        return None if answer is None else answer.code


class PullConsumer(User):
    """Pulls each queue from where it was, and follows what the broker says."""

    def __init__(
        self, place: Place, promises: Promises, dice: random.Random, topic: str, group: str
    ) -> None:
        super().__init__(place, promises, dice)
        self.topic, self.group = topic, group
        self._offsets: dict[int, int] = {}

    async def act(self) -> None:
        await self.pull(self.dice.randrange(QUEUES), self.dice.choice((0, 2000)))

    async def pull(self, queue_id: int, poll: int = 0) -> set[str] | None:
        """Return what is next in a queue, None if that is nothing."""
        asked = self.promises.tick()
        offset = self._offsets.get(queue_id, 0)
        header = PullHeader(
            consumer_group=self.group,
            topic=self.topic,
            queue_id=queue_id,
            queue_offset=offset,
            max_msg_nums=32,
            sys_flag=HAS_SUBSCRIPTION | (2 if poll else 0),
            commit_offset=0,
            suspend_timeout_millis=poll,
            sub_version=0,
            subscription="*",
        )
        answer = await self.connection.ask(RequestCode.PULL_MESSAGE, header)
        if answer is None:
            return set()
        if answer.code not in (ResponseCode.SUCCESS, ResponseCode.PULL_OFFSET_MOVED):
            return None
        self._offsets[queue_id] = answer.header(PullAnswerHeader).next_begin_offset
        if answer.code == ResponseCode.PULL_OFFSET_MOVED:
            return set() if self._offsets[queue_id] != offset else None
        found = {each.body.decode() for each in answered_records(bytes(answer.body))}
        for body in found:
            self.promises.delivered(self.group, body, asked)
        return found


class LiteConsumer(User):
    """Consumes lite topics of the parent topic."""

    def __init__(
        self, place: Place, promises: Promises, dice: random.Random, name: str, group: str
    ) -> None:
        super().__init__(place, promises, dice)
        self.name, self.group = name, group

    async def subscribe(self) -> None:
        """Subscribe to all lite topics."""
        body = lites.subscription_change("COMPLETE_ADD", self.name, self.group, *LITES)
        await self.connection.ask(RequestCode.LITE_SUBSCRIPTION_CTL, body=body)

    async def act(self) -> None:
        await self.subscribe()
        for record, receipt in await self.pop(5):
            if self.dice.random() < 0.8:
                await self.acknowledge(record, receipt)

    async def pop(self, seconds: int) -> list[tuple[popping.Record, str]]:
        asked = self.promises.tick()
        broker = await self.place.broker()
        now, poll = broker.state.store.clock.milliseconds(), self.dice.choice((0, 1000))
        header = lites.pop_header(self.name, self.group, now, poll=poll, invisible=seconds * 1000)
        answer = await self.connection.ask(RequestCode.POP_LITE_MESSAGE, header)
        if answer is None or answer.code != ResponseCode.SUCCESS:
            return []
        found = lites.popped(answer)
        for record, _ in found:
            self.promises.delivered(self.group, record.body.decode(), asked)
        return found

    async def acknowledge(self, record: popping.Record, receipt: str) -> None:
        header = lites.ack_header(self.group, record, receipt)
        await self.connection.ask(RequestCode.ACK_MESSAGE, header)
