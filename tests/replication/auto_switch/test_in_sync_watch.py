"""What a master makes of the controller's answers about its in-sync set."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from types import SimpleNamespace
from typing import Any

from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.errors import RemotingError
from mqlake.replication.auto_switch.group import Group
from mqlake.replication.auto_switch.in_sync_watch import InSyncWatch
from mqlake.replication.auto_switch.term import ChangeRefusedError, MasterTerm
from mqlake.store.replication.epochs import Epochs
from mqlake.store.replication.in_sync_set import InSyncSet
from tests import simulated
from tests.crash.disk import RecordedDisk
from tests.until import until

ALONE = MasterTerm(1, 1, "127.0.0.1:1", frozenset({1}), 1)
BOTH = ALONE._replace(members=frozenset({1, 2}), version=2)


class Watched:
    """A master, 1, and what the controller answers, one after the other.

    Attributes:
        asked: the sets that the controller was asked for.
        answers: raised, or returned; the last one again and again.
    """

    watch: InSyncWatch

    def __init__(self, answers: list[MasterTerm | Exception], term: MasterTerm = ALONE) -> None:
        self.asked: list[set[int]] = []
        self.answers = answers
        self.connections: list[Any] = []
        self.set = InSyncSet(1)
        self.set.set(term.members, term.version)

    def start(self) -> None:
        group = Group(Epochs(RecordedDisk()), lambda _: None, self._alter)
        group.epochs.begin(1, 0, 0)
        group.take_id(1)
        group.take_term(ALONE._replace(master_id=1))
        now = SimpleNamespace(ha_max_time_slave_not_catchup=60_000, check_sync_state_set_period=10)
        copies = SimpleNamespace(acknowledged={2: 0, 3: 0}, tell=lambda: None)
        copying = SimpleNamespace(confirm=lambda: None)
        settings: Any = SimpleNamespace(now=now)
        store: Any = SimpleNamespace(copies=copies, copying=copying)
        self.watch = InSyncWatch(settings, store, group, self.set, self.connections)
        self.watch.start()

    async def _alter(self, _term: MasterTerm, members: Iterable[int], _version: int) -> MasterTerm:
        self.asked.append(set(members))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def connect(self, broker_id: int, *, is_counted: bool = True, lacks: int = 0) -> None:
        slave = SimpleNamespace(
            broker_id=broker_id,
            is_learner=False,
            is_counted=is_counted,
            acknowledged=-lacks if lacks < 0 else 0,
            lacks=lacks,
            caught_up_at=asyncio.get_running_loop().time(),
        )
        self.connections.append(slave)
        self.watch.look()


def watching(watched: Watched, test: Callable[[], Awaitable[None]]) -> None:
    async def run() -> None:
        watched.start()
        try:
            await test()
        finally:
            await watched.watch.stop()

    simulated.run(run())


def test_who_may_have_become_a_member_counts_until_the_controller_says_otherwise() -> None:
    failure = RemotingError(ResponseCode.SYSTEM_ERROR, "no quorum in time: it may come yet")
    watched = Watched([failure])

    async def test() -> None:
        watched.connect(2)
        await until(lambda: watched.asked)
        watched.connections.clear()
        watched.watch.look()
        assert watched.set.counted == {2}
        watched.answers[:] = [ChangeRefusedError("as it is already", ALONE)]
        await until(lambda: watched.set.counted == frozenset())

    watching(watched, test)


def test_a_set_of_another_master_is_not_taken_over() -> None:
    watched = Watched(
        [ChangeRefusedError("another epoch", MasterTerm(2, 2, "", frozenset({2}), 9))], BOTH
    )

    async def test() -> None:
        await until(lambda: watched.asked)
        await asyncio.sleep(0)
        watched.watch.take(MasterTerm(2, 2, "", frozenset({2}), 9))
        assert (watched.set.members, watched.set.version) == (BOTH.members, BOTH.version)

    watching(watched, test)


def test_who_cannot_join_keeps_nobody_in() -> None:
    refusal = ChangeRefusedError("broker 3 is not alive", BOTH)
    alone = BOTH._replace(members=frozenset({1}), version=3)
    watched = Watched([alone, refusal], BOTH)

    async def test() -> None:
        watched.connect(3)
        await until(lambda: len(watched.asked) > 1)
        assert watched.asked[:2] == [{1}, {1, 3}]
        assert watched.set.members == {1}

    watching(watched, test)


def test_who_is_dead_at_the_controller_keeps_nobody_in() -> None:
    """Brokers 2 and 3 are connected, 4 is gone, and the controller takes 3 for dead."""
    four = ALONE._replace(members=frozenset({1, 2, 3, 4}), version=2)
    dead = ChangeRefusedError("broker 3 is not alive", four, is_of_dead=True)
    watched = Watched([dead, dead, four._replace(members=frozenset({1, 2}), version=3)], four)

    async def test() -> None:
        watched.connect(2)
        watched.connect(3)
        await until(lambda: watched.set.members == {1, 2})
        assert watched.asked[:3] == [{1, 2, 3}, {1, 3}, {1, 2}]

    watching(watched, test)


def test_a_member_that_has_lost_what_it_acknowledged_leaves_at_once() -> None:
    """It is back before its connection was missed; what it had was confirmed."""
    watched = Watched([BOTH._replace(members=frozenset({1}), version=3)], BOTH)
    watched.set.confirmed = 100

    async def test() -> None:
        watched.connect(2)
        await until(lambda: watched.asked)
        assert watched.asked[0] == {1}

    watching(watched, test)


def test_no_put_waits_for_a_slave_that_is_sent_nothing() -> None:
    """Its log is another one: it asks for an offset after the end of this one."""
    watched = Watched([BOTH])

    async def test() -> None:
        watched.connect(2, is_counted=False, lacks=-1)
        assert watched.set.counted == frozenset()
        assert watched.set.update({}, 100) == 100

    watching(watched, test)


def test_no_put_waits_for_a_slave_that_only_reads_from_now_on() -> None:
    watched = Watched([RemotingError(ResponseCode.SYSTEM_ERROR, "no quorum")])
    watched.set.confirmed = 100

    async def test() -> None:
        watched.connect(2)
        assert watched.set.counted == {2}
        watched.connections[0].is_counted = False
        watched.watch.look()
        assert watched.set.counted == frozenset()

    watching(watched, test)
