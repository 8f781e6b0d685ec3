"""The number of light queues is kept: it is always the number that the files have."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from mqlake.store.light.light_file import LightFile
from mqlake.store.owned_store import OwnedStore
from tests.store.light.lights import SETTINGS, LightMessages, lights_of, name, open_store

TOPICS = ("Parent", "Second")
LIMITED = msgspec.structs.replace(SETTINGS, max_commit_log_bytes=20 << 14)


class DrawnEvents:
    """A store to which drawn events happen."""

    def __init__(self, path: Path, seed: int) -> None:
        self.path, self.dice = path, random.Random(seed)
        self.store, self.sent = open_store(path, LIMITED), LightMessages()
        self.happened = Counter[str]()

    def files(self, topic: str) -> list[LightFile]:
        return list(lights_of(self.store)._files.files(topic))  # pyright: ignore[reportPrivateUsage]

    def check(self) -> None:
        """Compare the numbers that are kept with those of the names in the files."""
        light = lights_of(self.store)
        for topic in TOPICS:
            names = {each for file in self.files(topic) for each in file.names_in_steps()}
            assert light.count(topic) == len(names), self.happened
            heads = [head for head in light.heads(topic) if head is not None]
            assert len(heads) == len(names)

    def put(self) -> None:
        topic = self.dice.choice(TOPICS)
        # Most messages belong to few queues; the others come again after many segments.
        most = self.dice.choice((3, 3, 200))
        numbers = self.dice.sample(range(most), self.dice.choice((1, 1, 2)))
        body = bytes(self.dice.choice((20, 3000)))
        self.sent.put(self.store, body, [name(number, topic) for number in numbers], topic)

    def dispatch(self) -> None:
        self.store.tick()

    def checkpoint(self) -> None:
        self.store.durability.checkpoint()

    def delete(self) -> None:
        topic = self.dice.choice(TOPICS)
        self.store.removal.remove(topic)
        for each in [each for each in self.sent.next if f"${topic}$" in each]:
            del self.sent.next[each]

    def expire(self) -> None:
        self.store.durability.checkpoint()
        self.store.retention.clean()
        self.store.retention.check()
        while (job := self.store.retention.remove_next()) is not None:
            job.complete()

    def restart(self) -> None:
        self.store.close()
        self.store = open_store(self.path, LIMITED)

    def kill(self) -> None:
        self.store.abandon()
        self.store = open_store(self.path, LIMITED)

    def derive(self) -> None:
        self.store.close()
        shutil.rmtree(self.path / "lightqueue")
        self.store = open_store(self.path, LIMITED)


@pytest.mark.parametrize("seed", range(4))
def test_the_kept_number_is_the_counted_one(tmp_path: Path, seed: int) -> None:
    drawn = DrawnEvents(tmp_path, seed)
    often: list[Callable[[], None]] = [drawn.put] * 80 + [drawn.dispatch] * 15
    seldom = [drawn.checkpoint, drawn.expire, drawn.restart, drawn.kill, drawn.derive]
    for _ in range(900):
        event = drawn.dice.choice([*often, *seldom])
        if drawn.dice.randrange(300) == 0:
            event = drawn.delete
        event()
        drawn.happened[event.__name__] += 1
        if event != drawn.put:
            drawn.check()
    assert len(drawn.happened) == 8
    assert drawn.store.log.min_offset > 0
    drawn.store.close()


def test_a_number_asks_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = DrawnEvents(tmp_path, 0)
    for number in range(40):
        drawn.sent.put(drawn.store, bytes(3000), [name(number)])
        drawn.store.tick()
    assert len(drawn.files("Parent")) > 3

    def refused(_: LightFile) -> object:
        raise AssertionError("all names are read")

    monkeypatch.setattr(LightFile, "names_in_steps", refused)
    assert lights_of(drawn.store).count("Parent") == 40
    drawn.store.close()


def test_names_are_read_in_steps(tmp_path: Path) -> None:
    settings = msgspec.structs.replace(SETTINGS, mapped_file_size_commit_log=1 << 20)
    store, sent = open_store(tmp_path, settings), LightMessages()
    for number in range(3000):
        sent.put(store, b"", [name(number % 1700)])
    store.tick()
    require_steps(store)
    store.close()


def require_steps(store: OwnedStore) -> None:
    (file,) = lights_of(store)._files.files("Parent")  # pyright: ignore[reportPrivateUsage]
    assert file.count == 3000
    assert len(set(file.names_in_steps())) == 1700
    assert lights_of(store).count("Parent") == 1700
