"""Topics that are deleted and created again, beside a model of what lives.

What lives stays, whatever happens in between: kills at any moment of a deletion, and the loss of
queues, of the table of incarnations, of the checkpoint, or of all of these, one after another.

What dies stays dead while the table is there. If the table is lost, the settings and the queue
files say the same, with one exception: a topic that has settings, but does not have messages in
each of its queues. A lost queue looks like one that was deleted, and in doubt a record lives. So
from then on the dead messages of such a topic are *doubtful*: queries by key may find them, and its
empty queues may have them again once queue files are lost, too. If the table and queue files are
lost together, all dead messages are doubtful. Nothing else may come back.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable
from copy import deepcopy
from pathlib import Path
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from mqlake.formats.config.topics import Topic
from mqlake.formats.record import Record
from mqlake.storage.local_owned import LocalOwnedDirectory
from mqlake.store.append.message import Message
from mqlake.store.owned_store import OwnedStore
from mqlake.store.reader import StoreReader
from mqlake.store.settings import StoreSettings
from tests.crash.clock import ManualClock

SMALL = StoreSettings(
    mapped_file_size_commit_log=4096,
    mapped_file_size_consume_queue=80,
    max_hash_slot_num=16,
    max_index_num=32,
)
TOPICS, QUEUES = ("A", "B"), 2

Queue = tuple[str, int]
Bodies = dict[Queue, list[bytes]]


class Lives:
    """A store, and the bodies of the messages of each queue: living, dead, and doubtful ones."""

    def __init__(self, path: Path) -> None:
        self.path, self.clock, self.count = path, ManualClock(), 0
        self.lives: Bodies = {}
        self.dead: Bodies = {}
        self.doubtful: Bodies = {}
        self.open()
        self.put("Other", 0)

    def open(self) -> None:
        self.clock.forward(1)
        directory = LocalOwnedDirectory.make(self.path)
        self.store = OwnedStore.open(directory, SMALL, self.clock)
        self._note_returned()

    # Steps

    def put(self, topic: str, queue_id: int) -> None:
        body = b"%d" % self.count
        self.count += 1
        self.configure(topic)
        result = self.store.puts.put(Message(topic, body, keys="key", queue_id=queue_id))
        bodies = self.lives.setdefault((topic, queue_id), [])
        assert result.queue_offset == len(bodies)
        bodies.append(body)

    def configure(self, topic: str) -> None:
        if topic not in self.store.config.topics:
            self.store.config.topics.put(Topic(topic, QUEUES, QUEUES))

    def delete(self, topic: str) -> None:
        is_known = self._is_known(topic)
        self.store.config.topics.remove(topic)
        self.store.removal.remove(topic)
        self._die(topic, is_known=is_known)

    def _is_known(self, topic: str) -> bool:
        """Return whether a deletion is noted: not if nothing says that the topic has messages."""
        return bool(self.store.queues.ids(topic)) or any(name == topic for name, _ in self.lives)

    def _die(self, topic: str, *, is_known: bool) -> None:
        for queue in [queue for queue in self.lives if queue[0] == topic]:
            self.dead.setdefault(queue, []).extend(self.lives.pop(queue))
        if is_known:
            self._forget_doubts(topic)

    def _forget_doubts(self, topic: str) -> None:
        self.doubtful = {queue: each for queue, each in self.doubtful.items() if queue[0] != topic}

    def _doubt(self, *, are_queues_lost: bool) -> None:
        """Note whose dead messages nothing but the table of incarnations knows to be dead."""
        for topic in TOPICS:
            self._forget_doubts(topic)
            queues = [(topic, queue_id) for queue_id in range(QUEUES)]
            is_known = topic not in self.store.config.topics or all(map(self.lives.get, queues))
            if are_queues_lost or not is_known:
                self.doubtful |= {
                    queue: list(self.dead[queue]) for queue in queues if queue in self.dead
                }

    def _note_returned(self) -> None:
        """Let doubtful messages live that are in their queue again: those of one incarnation."""
        if not self.doubtful:
            return
        for queue, bodies in self.found().items():
            dead = self.doubtful.get(queue, [])
            if queue not in self.lives and bodies and bodies == dead[-len(bodies) :]:
                self.lives[queue] = bodies
                self.configure(queue[0])  # As a broker does with queues of an unknown topic.
                del dead[-len(bodies) :], self.dead[queue][-len(bodies) :]

    def delete_in_part(self, topic: str, steps: int, puts: list[int]) -> None:
        """Kill the store in the middle of a deletion, after messages to the next incarnation."""
        alive, dead, doubtful = deepcopy((self.lives, self.dead, self.doubtful))
        is_known = self._is_known(topic)
        removal = self.store.removal.steps(topic)
        for _, job in zip(range(steps), removal, strict=False):
            if job is not None:
                job.run()
                job.done()
        is_durable = self.store.config.incarnations.is_kept(self.store.config.incarnations.changes)
        self._die(topic, is_known=is_known)
        for queue_id in puts:
            self.put(topic, queue_id)
        self.kill()
        if not is_durable and self.found() != self.lives:
            # The deletion had not returned. The topic did not die, and lost nothing.
            for (name, queue_id), each in self.lives.items():
                if name == topic:
                    assert not alive.get((name, queue_id))
                    alive[name, queue_id] = each
            self.lives, self.dead, self.doubtful = alive, dead, doubtful
            self._note_returned()

    def tick(self) -> None:
        self.store.tick()

    def checkpoint(self) -> None:
        self.store.durability.checkpoint()

    def close(self) -> None:
        self.store.close()
        self.check_offline()
        self.open()

    def kill(self) -> None:
        self.store.config.persist()
        self.store.abandon()
        self.open()

    def kill_and_lose(self, *names: str) -> None:
        self.store.tick()
        self.store.config.persist()
        self.store.abandon()
        self.lose(names)
        self.open()

    def close_and_lose(self, *names: str) -> None:
        self.store.close()
        self.lose(names)
        self.open()

    def lose(self, names: tuple[str, ...]) -> None:
        if TABLE in names:
            self._doubt(are_queues_lost=len(names) > 1)
        for name in names:
            for path in self.path.glob(name):
                shutil.rmtree(path) if path.is_dir() else path.unlink()

    # Checks

    def found(self) -> Bodies:
        self.store.tick()
        reads = self.store.reads
        return {
            (topic, queue_id): [
                record.body for record in reads.get(topic, queue_id, 0, 1000).records
            ]
            for topic in reads.topics()
            for queue_id in reads.queues(topic)
        }

    def check(self) -> None:
        assert self.found() == self.lives
        reads = self.store.reads
        for topic in TOPICS:
            self._check_by_key(topic, reads.by_key(topic, "key", max=1000).records)

    def check_offline(self) -> None:
        with StoreReader.open(self.path) as reader:
            for topic in TOPICS:
                for queue_id in range(QUEUES):
                    records = reader.get(topic, queue_id, 0, 1000).records
                    assert [r.body for r in records] == self.lives.get((topic, queue_id), [])
                self._check_by_key(topic, reader.by_key(topic, "key", max=1000).records)

    def _check_by_key(self, topic: str, records: Iterable[Record]) -> None:
        found = sorted(record.body for record in records)
        returned = set(found).intersection(_of_topic(self.doubtful, topic))
        assert found == sorted([*_of_topic(self.lives, topic), *returned])


def _of_topic(bodies: Bodies, topic: str) -> list[bytes]:
    return [body for queue, each in bodies.items() if queue[0] == topic for body in each]


# The queues of another topic are there, or no queues would mean that nothing is known.
TABLE = "config/incarnations.json*"
LOSSES: tuple[tuple[str, ...], ...] = (
    ("consumequeue",),
    ("index",),
    ("checkpoint",),
    ("consumequeue", "checkpoint"),
    ("consumequeue", "index", "checkpoint"),
    (TABLE,),
    (TABLE, "consumequeue"),
    (TABLE, "consumequeue", "index", "checkpoint"),
    (TABLE, "consumequeue/A"),
    (TABLE, "consumequeue/*/0"),
    (TABLE, "consumequeue/*/0/00000000000000000000"),
    ("consumequeue/A",),
    ("consumequeue/*/0",),
    ("consumequeue/*/0/00000000000000000000",),
)

Step = tuple[Any, ...]
Steps = st.lists(
    st.one_of(
        st.tuples(st.just(Lives.put), st.sampled_from(TOPICS), st.integers(0, QUEUES - 1)),
        st.tuples(st.just(Lives.put), st.sampled_from(TOPICS), st.integers(0, QUEUES - 1)),
        st.tuples(st.just(Lives.delete), st.sampled_from(TOPICS)),
        st.tuples(
            st.just(Lives.delete_in_part),
            st.sampled_from(TOPICS),
            st.integers(1, 9),
            st.lists(st.integers(0, QUEUES - 1), max_size=2),
        ),
        st.sampled_from(
            [(step,) for step in (Lives.tick, Lives.checkpoint, Lives.close, Lives.kill)]
        ),
        st.builds(lambda names: (Lives.kill_and_lose, *names), st.sampled_from(LOSSES)),
        st.builds(lambda names: (Lives.close_and_lose, *names), st.sampled_from(LOSSES)),
    ),
    max_size=16,
)


def _put(topic: str, queue_id: int) -> Step:
    return (Lives.put, topic, queue_id)


def _kill_and_lose(*names: str) -> Step:
    return (Lives.kill_and_lose, *names)


EXAMPLES = int(os.environ.get("LIVES_EXAMPLES", "0"))
"""More than usual, and other ones each time."""

DOUBTFUL_WITHOUT_QUEUES = [
    _put("B", 0),
    (Lives.delete_in_part, "B", 6, []),
    _kill_and_lose("consumequeue", "index", "checkpoint"),
    _kill_and_lose(TABLE),
    _kill_and_lose("consumequeue", "checkpoint"),
    (Lives.kill,),
]
DOUBTFUL_WITHOUT_SETTINGS = [
    _put("A", 0),
    (Lives.delete_in_part, "A", 1, []),
    _kill_and_lose(TABLE, "consumequeue/A"),
    (Lives.delete, "A"),
]
DOUBTFUL_WITH_ONE_QUEUE = [
    *(_put("A", queue_id) for queue_id in (0, 1)),
    (Lives.delete, "A"),
    _put("A", 0),
    _kill_and_lose(TABLE),
    _kill_and_lose("consumequeue"),
    _put("A", 1),
]


@settings(max_examples=EXAMPLES or 25, derandomize=not EXAMPLES)
@example(steps=DOUBTFUL_WITHOUT_QUEUES)
@example(steps=DOUBTFUL_WITHOUT_SETTINGS)
@example(steps=DOUBTFUL_WITH_ONE_QUEUE)
@given(steps=Steps)
def test_records_of_deleted_topics_stay_dead_and_all_others_stay_readable(
    steps: list[Step],
) -> None:
    with tempfile.TemporaryDirectory() as path:
        run = Lives(Path(path))
        try:
            for step, *arguments in steps:
                step(run, *arguments)
                run.check()
        finally:
            run.store.abandon()
