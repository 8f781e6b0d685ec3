"""Stores that grow at random, and what tables of them should have."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from mqlake.store import BlockingMessageStore, Message
from tests.lake.tables.tables import Row
from tests.spark.follow.drivers import Kind
from tests.spark.follow.killing import Outcome, Truth

TOPICS = ("Orders", "%RETRY%G", "支付")
SMALL = {"mappedFileSizeCommitLog": 1 << 16}

Key = tuple[str, str]


class Appended:
    """Every message is in the table once."""

    def __init__(self, path: Path, seed: int) -> None:
        self._path, self._chance = path, random.Random(seed)
        self._sent: dict[tuple[str, int, int], bytes] = {}

    @property
    def messages(self) -> int:
        return len(self._sent)

    def put(self, count: int) -> None:
        """Put messages into the store."""
        with BlockingMessageStore.open(self._path, SMALL) as store:
            for _ in range(count):
                topic, queue = self._chance.choice(TOPICS), self._chance.randrange(3)
                body = self._chance.randbytes(self._chance.randint(0, 900))
                result = store.put(Message(topic, body, queue_id=queue))
                assert result.queue_offset is not None
                self._sent[topic, queue, result.queue_offset] = body

    def compare(self, rows: Sequence[Row], outcome: Outcome, *, is_last: bool) -> None:
        """See `killing.Truth`."""
        bodies = {(row["topic"], row["queueId"], row["queueOffset"]): row["body"] for row in rows}
        keys = Counter((row["topic"], row["queueId"], row["queueOffset"]) for row in rows)
        outcome.doubled += [key for key, count in keys.items() if count > 1]
        outcome.wrong += [key for key, body in bodies.items() if self._sent.get(key) != body]
        if is_last:
            outcome.lost += [key for key in self._sent if key not in bodies]


class Keyed:
    """The newest message of each key is in the table; `model` has them.

    Attributes:
        plain: bodies of messages without a key, of which all are there.
    """

    def __init__(self, path: Path, seed: int) -> None:
        self.path, self._chance = path, random.Random(seed)
        self.model: dict[Key, bytes] = {}
        self.plain: list[bytes] = []
        self.messages = 0
        self._all: set[tuple[Key, bytes]] = set()

    def put(self, count: int) -> None:
        """Put messages into the store; one with an empty body deletes its key."""
        with BlockingMessageStore.open(self.path, SMALL) as store:
            for _ in range(count):
                topic, key = self._chance.choice("AB"), f"k{self._chance.randrange(25)}"
                body = b"" if self._chance.random() < 0.2 else self._chance.randbytes(20)
                keys = [key, "x"] if self._chance.random() < 0.9 else []
                store.put(Message(topic, body, keys=keys))
                self.messages += 1
                whole = topic, " ".join(keys)
                if not keys:
                    self.plain.append(body)
                elif body:
                    self.model[whole] = body
                    self._all.add((whole, body))
                else:
                    self.model.pop(whole, None)

    def compare(self, rows: Sequence[Row], outcome: Outcome, *, is_last: bool) -> None:
        """See `killing.Truth`."""
        keyed = [
            ((row["topic"], " ".join(row["keys"])), row["body"]) for row in rows if row["keys"]
        ]
        found = dict(keyed)
        counts = Counter(key for key, _ in keyed)
        outcome.doubled += [key for key, count in counts.items() if count > 1]
        outcome.wrong += [key for key, body in keyed if (key, body) not in self._all]
        plain = Counter(row["body"] for row in rows if not row["keys"])
        outcome.doubled += list(plain - Counter(self.plain))
        if is_last:
            outcome.lost += list(Counter(self.plain) - plain)
            outcome.lost += [key for key in self.model if key not in found]
            outcome.wrong += [key for key, body in keyed if self.model.get(key) != body]


def truths(kinds: Sequence[Kind], seed: int) -> dict[Kind, Callable[[Path], Truth]]:
    """Return what makes the store of each kind of table, and knows what the table should have."""

    def made(kind: Kind, number: int) -> Callable[[Path], Truth]:
        of = Appended if kind.column is None else Keyed
        return lambda path: of(path, seed + number)

    return {kind: made(kind, number) for number, kind in enumerate(kinds)}
