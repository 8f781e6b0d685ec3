"""What happens to one broker, over the wire: the same for every broker, and every pace of time."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

from mqlake.formats.config.subscription_group import SubscriptionGroup
from mqlake.formats.record import Record
from mqlake.protocol.body import encode_body
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, request
from mqlake.protocol.header import Header
from mqlake.protocol.headers.admin import DeleteGroupHeader, TopicNameHeader
from mqlake.protocol.headers.pop import AckHeader, ChangeInvisibleTimeHeader
from mqlake.protocol.headers.pull import HAS_SUBSCRIPTION, PullAnswerHeader, PullHeader
from mqlake.protocol.headers.send import SendMessageResponseHeader
from mqlake.remoting.client import RemotingClient
from tests.broker.admin.asking import wanted
from tests.broker.answered_records import answered_records
from tests.broker.pop import popping
from tests.broker.pop.popping import Popped
from tests.broker.running import PATIENCE, to

QUEUES = 2
_READER = "ReaderOfEndings"
_NOTHING = (
    ResponseCode.PULL_NOT_FOUND,
    ResponseCode.PULL_RETRY_IMMEDIATELY,
    ResponseCode.TOPIC_NOT_EXIST,
)


@dataclass(frozen=True)
class Pace:
    """How long things take, in seconds.

    Attributes:
        out: for how long popped messages are invisible.
        stay: after how long a check point is stored (`popCkStayBufferTime`).
        level, delay: how long messages wait that are delayed: by a level, and by a timer.
        step: between two looks at what a consumer gets.
        least: how many looks there are that find nothing, for what must not come.
        most: how many looks there are, for what must come.
    """

    out: int
    stay: int
    level: int
    delay: int
    step: float
    least: int
    most: int


class Scene(ABC):
    """A broker, and one client of it."""

    def __init__(self, pace: Pace) -> None:
        self.pace = pace

    @property
    @abstractmethod
    def address(self) -> str:
        """The address of the broker, which may change with a start."""

    @property
    @abstractmethod
    def client(self) -> RemotingClient:
        """The one client."""

    @abstractmethod
    async def later(self, seconds: float) -> None:
        """Let time pass, and the broker do what is due."""

    @abstractmethod
    async def settle(self) -> None:
        """Let the broker do what it does every second, and store what it was sent."""

    @abstractmethod
    async def restart(self, **settings: object) -> None:
        """Stop the broker cleanly, and start it with other settings."""

    @abstractmethod
    async def kill(self) -> None:
        """End the broker as by `kill -9`, and start it."""

    def born_time(self) -> int:
        """Return when a request is sent, in milliseconds; 0 if it does not say."""
        return int(time.time() * 1000)

    @abstractmethod
    async def flush(self) -> None:
        """Have the broker write, and show, what it was sent, if it does not do so by itself."""

    async def ask(self, code: int, header: Header | None = None, body: bytes = b"") -> Command:
        """Return the response to a request, whatever its code."""
        return await self.client.request(self.address, request(code, header, body), PATIENCE)

    async def done(self, code: int, header: Header | None = None, body: bytes = b"") -> Command:
        """Return the response to a request that succeeds."""
        answer = await self.ask(code, header, body)
        assert answer.code == ResponseCode.SUCCESS, f"{code}: {answer.code} {answer.remark}"
        return answer

    # Topics and groups

    async def create(self, topic: str, group: str, queues: int = QUEUES) -> None:
        header = wanted(topic, read_queue_nums=queues, write_queue_nums=queues)
        await self.done(RequestCode.UPDATE_AND_CREATE_TOPIC, header)
        body = encode_body(SubscriptionGroup(group_name=group))
        await self.done(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, None, body)

    async def delete_topic(self, topic: str) -> None:
        await self.done(RequestCode.DELETE_TOPIC_IN_BROKER, TopicNameHeader(topic=topic))

    async def delete_group(self, group: str, *, clean_offset: bool) -> None:
        header = DeleteGroupHeader(group_name=group, clean_offset=clean_offset)
        await self.done(RequestCode.DELETE_SUBSCRIPTIONGROUP, header)

    # Messages

    async def send(
        self,
        topic: str,
        *bodies: str,
        queue_id: int = QUEUES - 1,
        properties: str = "",
        sys_flag: int = 0,
    ) -> list[SendMessageResponseHeader]:
        answers: list[SendMessageResponseHeader] = []
        for body in bodies:
            header = to(topic, queue_id=queue_id, properties=properties, sys_flag=sys_flag)
            answer = await self.done(RequestCode.SEND_MESSAGE_V2, header, body.encode())
            answers.append(answer.header(SendMessageResponseHeader))
        await self.flush()
        return answers

    async def records(self, topic: str, queue_id: int, offset: int = 0) -> list[Record]:
        """Return what a queue shows from an offset on, to a consumer that pulls."""
        await self.flush()
        found: list[Record] = []
        while True:
            header = PullHeader(
                consumer_group=_READER,
                topic=topic,
                queue_id=queue_id,
                queue_offset=offset,
                max_msg_nums=32,
                sys_flag=HAS_SUBSCRIPTION,
                commit_offset=0,
                suspend_timeout_millis=0,
                sub_version=0,
                subscription="*",
            )
            answer = await self.ask(RequestCode.PULL_MESSAGE, header)
            if answer.code in _NOTHING:
                return found
            said = answer.header(PullAnswerHeader)
            if answer.code == ResponseCode.PULL_OFFSET_MOVED:
                if said.next_begin_offset <= offset:
                    return found
            else:
                assert answer.code == ResponseCode.SUCCESS, f"{answer.code} {answer.remark}"
                found += answered_records(bytes(answer.body))
            offset = said.next_begin_offset

    async def bodies(self, topic: str, queues: int = QUEUES) -> list[str]:
        """Return what all queues of a topic show."""
        return [
            each.body.decode()
            for queue_id in range(queues)
            for each in await self.records(topic, queue_id)
        ]

    async def shown(self, topic: str, count: int, queues: int = QUEUES) -> None:
        """Return once all queues of a topic together show so many messages."""
        for _ in range(self.pace.most):
            if len(await self.bodies(topic, queues)) >= count:
                return
            await self.later(min(self.pace.step, 5))
        raise AssertionError(f"{topic} does not show {count} messages")

    # Pops

    async def pop(self, topic: str, group: str, **fields: object) -> list[Popped]:
        """Pop messages, which become invisible for a while."""
        known = {
            "topic": topic,
            "consumer_group": group,
            "invisible_time": self.pace.out * 1000,
            "born_time": self.born_time(),
        }
        answer = await self.ask(RequestCode.POP_MESSAGE, popping.header(**(known | fields)))
        assert answer.code in (ResponseCode.SUCCESS, ResponseCode.POLLING_TIMEOUT), (
            f"{answer.code} {answer.remark}"
        )
        return popping.read(answer) if answer.code == ResponseCode.SUCCESS else []

    async def acknowledge(self, topic: str, group: str, popped: Popped) -> None:
        await self.done(
            RequestCode.ACK_MESSAGE, AckHeader(**popping.receipt_fields(topic, group, popped))
        )

    async def change(self, topic: str, group: str, popped: Popped, milliseconds: int) -> None:
        fields = {**popping.receipt_fields(topic, group, popped), "invisible_time": milliseconds}
        header = ChangeInvisibleTimeHeader(**fields)
        await self.done(RequestCode.CHANGE_MESSAGE_INVISIBLETIME, header)

    async def received(
        self, topic: str, group: str, expected: Collection[str], **fields: object
    ) -> Counter[str]:
        """Return how often a group gets each message; what is expected must come in time.

        Whatever is not expected has several times its invisible time to come, too.
        """
        found = Counter[str]()
        quiet = 0
        for _ in range(self.pace.most):
            if quiet >= self.pace.least and found.keys() >= set(expected):
                break
            taken = await self.pop(topic, group, invisible_time=int(PATIENCE * 1000), **fields)
            for each in taken:
                found[each.body] += 1
                await self.acknowledge(topic, group, each)
            if not taken:
                quiet += 1
                await self.later(self.pace.step)
        return found
