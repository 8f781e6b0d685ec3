"""A broker over a simulated wire: its disk fails an operation, or the connection is reset."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, TypeVar

from mqlake.broker.broker import Broker
from mqlake.broker.settings import make_broker_settings
from mqlake.errors import StoreError
from mqlake.formats.config.subscription_group import SubscriptionGroup
from mqlake.formats.message_batch import encode_batch
from mqlake.protocol.body import encode_body
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, request
from mqlake.protocol.header import Header
from mqlake.protocol.headers.admin import CreateTopicHeader, DeleteGroupHeader, TopicNameHeader
from mqlake.protocol.headers.offsets import UpdateConsumerOffsetHeader
from mqlake.protocol.headers.send import SendBackHeader
from mqlake.remoting.client import RemotingClient
from mqlake.remoting.errors import ConnectionFailedError, RequestTimeoutError
from mqlake.store.owned_store import OwnedStore
from tests.broker.running import to
from tests.comparison.disk_world import FAILURES, DiskWorld
from tests.comparison.run import PerhapsError, Step, View, World
from tests.comparison.store import look_at
from tests.simulation.inputs import LoopClock, replaced
from tests.simulation.loop import SimulatedLoop
from tests.simulation.network import Network
from tests.simulation.process import Process
from tests.simulation.run import end_run
from tests.simulation.transport import Connection

T = TypeVar("T")
RESET = "RESET"
"""The failure of a connection: it is reset at a write of one of its ends."""
_TOPIC, _GROUP = "orders", "readers"
_MACHINE, _PORT = "10.0.1.1", 10911
_ADDRESS = f"{_MACHINE}:{_PORT}"
_ANSWER = 30.0
_SETTINGS: Mapping[str, object] = {
    "mappedFileSizeCommitLog": 4 << 10,
    "mappedFileSizeConsumeQueue": 200,
    "mappedFileSizeTimerLog": 8 << 10,
    "maxHashSlotNum": 4,
    "maxIndexNum": 32,
    "messageDelayLevel": "1s 2s 3s",
    "reviveQueueNum": 1,
    "transactionTimeOut": 60_000,
    "brokerName": "broker-a",
    "brokerIP1": _MACHINE,
    "bindAddress": _MACHINE,
    "listenPort": _PORT,
    "storePathRootDir": "/simulated",
}
_PERHAPS = (
    ResponseCode.FLUSH_DISK_TIMEOUT,
    ResponseCode.FLUSH_SLAVE_TIMEOUT,
    ResponseCode.SLAVE_NOT_AVAILABLE,
)


class WireWorld(DiskWorld):
    """A process with a disk, and connections of which one may be reset."""

    def __init__(self, failure: str, at: int, network: Network) -> None:
        super().__init__(
            FAILURES[0] if failure == RESET else failure, 0 if failure == RESET else at
        )
        self._resets, self._reset_at = failure == RESET, at
        self._writes = 0
        self._reset: tuple[str, int] | None = None
        network.on_write = self._written
        self.clock = LoopClock(network.loop)  # pyright: ignore[reportAttributeAccessIssue]
        self.disk.clock = self.clock

    @property
    def failure(self) -> tuple[str, int] | None:
        return self._reset or super().failure

    @property
    def operations(self) -> int:
        return self._writes if self._resets else super().operations

    def _written(self, connection: Connection) -> None:
        if self._resets:
            self._writes += 1
            if self._writes == self._reset_at:
                self._reset = _ADDRESS, 104
                connection.cut()


class WireSubject:
    """A broker, and a user who asks it by requests."""

    def __init__(self, failure: str, at: int, workload: WireWorkload) -> None:
        self._workload = workload
        self._loop = SimulatedLoop(random.Random("loop"))
        self._loop.network = self._network = Network(self._loop, random.Random("network"))
        self.world = WireWorld(failure, at, self._network)
        self._undo = ExitStack()
        intervals = {"look": 0.2, "routes": 5.0, "heartbeats": 3.0}
        self._undo.enter_context(replaced(self._loop, "0", intervals=intervals))
        self._loop.set_exception_handler(self._unhandled)
        self._settings = make_broker_settings({**_SETTINGS, **workload.settings})
        self._broker: Broker | None = None
        self._process: Process | None = None
        self._user: Process | None = None
        self._client: RemotingClient | None = None
        self._errors: list[str] = []

    def _unhandled(self, _: object, context: dict[str, Any]) -> None:
        self._errors.append(str(context.get("exception") or context.get("message")))

    def close(self) -> None:
        end_run(self._loop, self._network)
        self._undo.close()

    def steps(self) -> Iterator[Step]:
        yield Step("start", self._start)
        yield from self._workload.script(self)
        yield Step("settle", lambda: self._run(asyncio.sleep(70.0)))
        yield Step("stop", self._stop)
        yield Step("start again", self._start)

    def look(self) -> View | None:
        if self._broker is None:
            return None
        assert not self._errors, self._errors
        store = self._broker.parts.store
        assert self.world.is_final or not store.failed.done(), store.failed
        return self._look_at(store.core)

    def left(self) -> View:
        store = OwnedStore.open(self.world.left(), self._settings, self.world.clock)
        try:
            return self._look_at(store)
        finally:
            store.abandon()

    def _look_at(self, store: OwnedStore) -> View:
        # Positions are a store's affair; and whoever lost an answer may do a thing twice.
        return look_at(store, [], is_exact=False)

    def revive(self) -> None:
        self._end()
        self._start()

    # The broker

    def _start(self) -> None:
        async def start() -> None:
            self._process = Process("broker", _MACHINE)
            self._broker = Broker(self._settings, directory=self.world.disk, clock=self.world.clock)
            await self._process.run(self._broker.start())

        if self._broker is None:
            try:
                self._run(start())
            except BaseException:
                self._end()
                raise

    def _stop(self) -> None:
        async def stop() -> None:
            assert self._process is not None
            assert self._broker is not None
            await self._process.run(self._broker.stop())

        try:
            if self._broker is None:
                self._start()
            self._run(stop())
        finally:
            self._end()

    def _end(self) -> None:
        if self._process is not None:
            self._network.end_process(self._process)
        self._process = self._broker = None
        self.world.disk.abandon()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._loop.run_until_complete(work)

    # Requests

    def _ask(self, code: int, header: Header | None, body: bytes) -> Command:
        answers: list[Command] = []

        async def ask() -> None:
            if self._user is None:
                self._user = Process("user", "10.0.2.1")
                self._client = self._user.call(lambda: RemotingClient(connect_timeout=_ANSWER))
            assert self._client is not None
            asked = self._client.request(_ADDRESS, request(code, header, body), _ANSWER)

            async def note() -> None:
                answers.append(await asked)

            await self._user.run(note())

        try:
            self._run(ask())
        except (ConnectionFailedError, RequestTimeoutError) as error:
            if self.world.failure is None or self.world.failure[1] != 104:
                raise
            raise PerhapsError(f"{error} (Connection reset by peer)") from error
        answer = answers[0]
        if answer.code != ResponseCode.SUCCESS:
            remark = answer.remark or f"code {answer.code}"
            raise (PerhapsError if answer.code in _PERHAPS else StoreError)(remark)
        return answer

    def ask(
        self, name: str, code: int, header: Callable[[], Header] | None = None, body: bytes = b""
    ) -> Step:
        """Return a request as a step; what is asked may be done twice."""
        return Step(name, lambda: self._ask(code, header() if header else None, body))

    def send(self, body: str, topic: str = _TOPIC, **fields: object) -> Step:
        header = lambda: to(topic, **fields)  # noqa: E731
        return self.ask(f"send {body}", RequestCode.SEND_MESSAGE_V2, header, body.encode())

    def send_batch(self, *bodies: str) -> Step:
        body = encode_batch((0, each.encode(), b"") for each in bodies)
        header = lambda: to(_TOPIC, batch=True)  # noqa: E731
        return self.ask(f"send {bodies}", RequestCode.SEND_BATCH_MESSAGE, header, body)

    def create(self, topic: str) -> Step:
        header = CreateTopicHeader(topic, 2, 2, 6, "SINGLE_TAG")
        return self.ask(f"create {topic}", RequestCode.UPDATE_AND_CREATE_TOPIC, lambda: header)

    def create_group(self) -> Step:
        code = RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP
        return self.ask("create the group", code, None, encode_body(SubscriptionGroup(_GROUP)))

    def delete(self, topic: str) -> Step:
        header = TopicNameHeader(topic=topic)
        return self.ask(f"delete {topic}", RequestCode.DELETE_TOPIC_IN_BROKER, lambda: header)

    def delete_group(self, group: str) -> Step:
        header = DeleteGroupHeader(group_name=group, clean_offset=True)
        return self.ask(f"delete {group}", RequestCode.DELETE_SUBSCRIPTIONGROUP, lambda: header)

    def commit(self, offset: int) -> Step:
        header = UpdateConsumerOffsetHeader(
            consumer_group=_GROUP, topic=_TOPIC, queue_id=0, commit_offset=offset
        )
        return self.ask(f"commit {offset}", RequestCode.UPDATE_CONSUMER_OFFSET, lambda: header)

    def send_back(self, number: int) -> Step:
        """Give the n-th message of queue 0 back: it comes again later."""

        def header() -> Header:
            assert self._broker is not None
            records = self._broker.parts.store.core.reads.get(_TOPIC, 0, number, 1).records
            return SendBackHeader(
                offset=records[0].physical_offset, group=_GROUP, delay_level=1, origin_topic=_TOPIC
            )

        return self.ask(f"send back {number}", RequestCode.CONSUMER_SEND_MSG_BACK, header)

    def configure(self, text: str) -> Step:
        return self.ask(f"set {text}", RequestCode.UPDATE_BROKER_CONFIG, Header, text.encode())

    def pass_time(self, seconds: float) -> Step:
        return Step("time passes", lambda: self._run(asyncio.sleep(seconds)), is_exact=False)


@dataclass
class WireWorkload:
    """A script of requests to a broker."""

    name: str
    script: Callable[[WireSubject], Iterator[Step]]
    settings: Mapping[str, object] = field(default_factory=dict)
    failures: Sequence[str] = (*FAILURES, RESET)

    def begin(self, failure: str, at: int) -> tuple[World, WireSubject]:
        subject = WireSubject(failure, at, self)
        return subject.world, subject


def _sends(s: WireSubject) -> Iterator[Step]:
    yield s.create(_TOPIC)
    yield s.create_group()
    for number in range(4):
        yield s.send(f"s{number}", queue_id=number % 2, properties=f"KEYS\x01k{number}\x02")
    yield s.send_batch("b1", "b2")
    yield s.send("long " + 1500 * "x")
    yield s.commit(1)
    yield s.pass_time(6.0)
    yield s.commit(2)
    yield s.send("last")


def _later(s: WireSubject) -> Iterator[Step]:
    yield s.create(_TOPIC)
    yield s.create_group()
    yield s.send("now")
    yield s.send("delayed", properties="DELAY\x011\x02")
    yield s.pass_time(2.0)
    yield s.send_back(0)
    yield s.pass_time(2.0)
    yield s.send("timed", properties="TIMER_DELAY_SEC\x012\x02", queue_id=1)
    yield s.pass_time(4.0)


def _manages(s: WireSubject) -> Iterator[Step]:
    yield s.create(_TOPIC)
    yield s.create_group()
    yield s.create("others")
    yield s.send("o1", "others")
    yield s.send("s1")
    yield s.commit(1)
    yield s.delete("others")
    yield s.create("others")
    yield s.send("o2", "others")
    yield s.configure("fileReservedTime=100\n")
    yield s.delete_group(_GROUP)


_SYNC = {"flushDiskType": "SYNC_FLUSH"}
WIRE_WORKLOADS = [
    WireWorkload("wire-sends", _sends),
    WireWorkload("wire-sends-synced", _sends, _SYNC),
    WireWorkload("wire-later", _later),
    WireWorkload("wire-manages", _manages),
]
