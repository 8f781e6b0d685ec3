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
TOPIC, GROUP = "orders", "readers"
_MACHINE, _PORT = "10.0.1.1", 10911
ADDRESS = f"{_MACHINE}:{_PORT}"
_ANSWER = 30.0
SETTINGS: Mapping[str, object] = {
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

    def count(self, failure: str) -> int:
        return self._writes if failure == RESET else super().count(failure)

    def _written(self, connection: Connection) -> None:
        self._writes += 1
        if self._resets and self._writes == self._reset_at:
            self._reset = ADDRESS, 104
            connection.cut()


class WireSubject:
    """A broker, and a user who asks it by requests.

    Attributes:
        was_killed: whether a broker has ended otherwise than by a stop that succeeded.
        asked: the address to which requests go.
    """

    asked = ADDRESS

    def __init__(self, failure: str, at: int, workload: WireWorkload) -> None:
        self._workload, self._ignored = workload, tuple(workload.ignored)
        self._loop = SimulatedLoop(random.Random("loop"))
        self._loop.network = self.network = Network(self._loop, random.Random("network"))
        self.world = WireWorld(failure, at, self.network)
        self._undo = ExitStack()
        intervals = {"look": 0.2, "routes": 5.0, "heartbeats": 3.0}
        self._undo.enter_context(replaced(self._loop, "0", intervals=intervals))
        self._loop.set_exception_handler(self._unhandled)
        self._settings = make_broker_settings({**SETTINGS, **workload.settings})
        self.broker: Broker | None = None
        self.process: Process | None = None
        self._user: Process | None = None
        self._client: RemotingClient | None = None
        self._errors: list[str] = []
        self.was_killed = False

    def _unhandled(self, _: object, context: dict[str, Any]) -> None:
        self._errors.append(str(context.get("exception") or context.get("message")))

    def close(self) -> None:
        end_run(self._loop, self.network)
        self._undo.close()

    def steps(self) -> Iterator[Step]:
        yield Step("start", self._start)
        yield from self._workload.script(self)
        yield Step("settle", lambda: self.sleep(self._workload.settling))
        yield Step("stop", self._stop)
        yield Step("start again", self._start)

    def look(self) -> View | None:
        if self.broker is None:
            return None
        assert not self._errors, self._errors
        store = self.broker.state.store
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
        seen = look_at(store, [], is_exact=False)
        return {name: each for name, each in seen.items() if not name.startswith(self._ignored)}

    def revive(self) -> None:
        self.was_killed = True
        self._end()
        self._start()

    # The broker

    def _start(self) -> None:
        async def start() -> None:
            self.process = Process("broker", _MACHINE)
            self.broker = Broker(self._settings, directory=self.world.disk, clock=self.world.clock)
            await self.process.run(self.broker.start())

        if self.broker is None:
            try:
                self.run(start())
            except BaseException:
                self._end()
                raise

    def _stop(self) -> None:
        async def stop() -> None:
            assert self.process is not None
            assert self.broker is not None
            await self.process.run(self.broker.stop())

        try:
            if self.broker is None:
                self._start()
            self.run(stop())
        except BaseException:
            self.was_killed = True
            raise
        finally:
            self._end()

    def _end(self) -> None:
        for process in (self.process, self._user):
            if process is not None:
                self.network.end_process(process)
        self.process = self.broker = self._user = None
        self.world.disk.abandon()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Do something until it is done."""
        return self._loop.run_until_complete(work)

    def sleep(self, seconds: float) -> None:
        """Let time pass.

        Raises:
            StoreError: the store accepts nothing any more: what waits comes after a restart only.
        """
        self.run(asyncio.sleep(seconds))
        if self.broker is not None and (failure := self.broker.state.store.core.health.failure):
            raise failure

    # Requests

    @property
    def now(self) -> float:
        """Seconds since the begin."""
        return self._loop.time()

    def request(
        self,
        code: int,
        header: Header | None,
        body: bytes = b"",
        accepted: Sequence[int] = (ResponseCode.SUCCESS,),
    ) -> Command:
        """Return the answer to a request.

        Raises:
            StoreError: it was refused.
            PerhapsError: it was not answered, or it may have been done.
        """
        answers: list[Command] = []

        async def ask() -> None:
            if self._user is None:
                self._user = Process("user", "10.0.2.1")
                self._client = self._user.call(lambda: RemotingClient(connect_timeout=_ANSWER))
            assert self._client is not None
            asked = self._client.request(self.asked, request(code, header, body), _ANSWER)

            async def note() -> None:
                answers.append(await asked)

            await self._user.run(note())

        try:
            self.run(ask())
        except (ConnectionFailedError, RequestTimeoutError) as error:
            if self.world.failure is None or self.world.failure[1] != 104:
                raise
            raise PerhapsError(f"{error} (Connection reset by peer)") from error
        answer = answers[0]
        if answer.code not in accepted:
            remark = answer.remark or f"code {answer.code}"
            raise (PerhapsError if answer.code in _PERHAPS else StoreError)(remark)
        return answer

    def ask(
        self, name: str, code: int, header: Callable[[], Header] | None = None, body: bytes = b""
    ) -> Step:
        """Return a request as a step; what is asked may be done twice."""
        return Step(name, lambda: self.request(code, header() if header else None, body))

    def send(self, body: str, topic: str = TOPIC, **fields: object) -> Step:
        header = lambda: to(topic, **fields)  # noqa: E731
        return self.ask(f"send {body}", RequestCode.SEND_MESSAGE_V2, header, body.encode())

    def send_batch(self, *bodies: str) -> Step:
        body = encode_batch((0, each.encode(), b"") for each in bodies)
        header = lambda: to(TOPIC, batch=True)  # noqa: E731
        return self.ask(f"send {bodies}", RequestCode.SEND_BATCH_MESSAGE, header, body)

    def create(self, topic: str) -> Step:
        header = CreateTopicHeader(topic, 2, 2, 6, "SINGLE_TAG")
        return self.ask(f"create {topic}", RequestCode.UPDATE_AND_CREATE_TOPIC, lambda: header)

    def create_group(self) -> Step:
        code = RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP
        return self.ask("create the group", code, None, encode_body(SubscriptionGroup(GROUP)))

    def delete(self, topic: str) -> Step:
        header = TopicNameHeader(topic=topic)
        return self.ask(f"delete {topic}", RequestCode.DELETE_TOPIC_IN_BROKER, lambda: header)

    def delete_group(self, group: str) -> Step:
        header = DeleteGroupHeader(group_name=group, clean_offset=True)
        return self.ask(f"delete {group}", RequestCode.DELETE_SUBSCRIPTIONGROUP, lambda: header)

    def commit(self, offset: int) -> Step:
        header = UpdateConsumerOffsetHeader(
            consumer_group=GROUP, topic=TOPIC, queue_id=0, commit_offset=offset
        )
        return self.ask(f"commit {offset}", RequestCode.UPDATE_CONSUMER_OFFSET, lambda: header)

    def send_back(self, number: int) -> Step:
        """Give the n-th message of queue 0 back: it comes again later."""

        def header() -> Header:
            assert self.broker is not None
            records = self.broker.state.store.core.reads.get(TOPIC, 0, number, 1).records
            return SendBackHeader(
                offset=records[0].physical_offset, group=GROUP, delay_level=1, origin_topic=TOPIC
            )

        return self.ask(f"send back {number}", RequestCode.CONSUMER_SEND_MSG_BACK, header)

    def configure(self, text: str) -> Step:
        return self.ask(f"set {text}", RequestCode.UPDATE_BROKER_CONFIG, Header, text.encode())

    def restart(self) -> Step:
        def act() -> None:
            self._stop()
            self._start()

        return Step("restart", act)

    def pass_time(self, seconds: float) -> Step:
        return Step("time passes", lambda: self.sleep(seconds), is_exact=False)


@dataclass
class WireWorkload:
    """A script of requests to a broker.

    Attributes:
        ignored: beginnings of the names of queues that do not matter.
        settling: seconds until everything that waits has happened.
    """

    name: str
    script: Callable[[WireSubject], Iterator[Step]]
    settings: Mapping[str, object] = field(default_factory=dict)
    failures: Sequence[str] = (*FAILURES, RESET)
    ignored: Sequence[str] = ()
    settling: float = 70.0

    def begin(self, failure: str, at: int) -> tuple[World, WireSubject]:
        subject = WireSubject(failure, at, self)
        return subject.world, subject
