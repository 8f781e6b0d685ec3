"""Writers of real files: archives, conversions, a name server's values, a consumer's offsets."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from mqlake.client import MessageQueue
from mqlake.client.consumer.local_offsets import LocalOffsets
from mqlake.jobs.archive.job import archive
from mqlake.jobs.convert.to_kafka import convert_to_kafka
from mqlake.jobs.local import LocalEngine
from mqlake.kafka.log.log_directory import LogDirectory
from mqlake.namesrv.kv_config import KvConfig
from mqlake.namesrv.settings import NamesrvSettings
from mqlake.storage.local import LocalDirectory
from mqlake.storage.local_owned import LocalOwnedDirectory
from mqlake.storage.object_target import LocalTarget
from mqlake.store.append.message import Message
from mqlake.store.archive.opening import open_place
from mqlake.store.owned_store import OwnedStore
from mqlake.store.reader import StoreReader
from tests.comparison.local_world import LOCAL_FAILURES, LocalWorld
from tests.comparison.run import Step, View, World
from tests.crash.clock import ManualClock
from tests.crash.store_workload import ASYNC, settings_of

TOPIC = "orders"
PLACE = tempfile.TemporaryDirectory(prefix="mqlake-compared-")
Script = Callable[[Path], Iterator[Step]]


@cache
def stored(count: int) -> Path:
    """Return a stopped store of several segments."""
    path = Path(PLACE.name, f"{count}")
    store = OwnedStore.open(LocalOwnedDirectory.make(path), settings_of(ASYNC), ManualClock())
    for number in range(count):
        body = b"%d:" % number
        store.puts.put(
            Message(TOPIC, body.ljust(700, b"x"), keys=f"k{number}", queue_id=number % 2)
        )
    store.close()
    return path


def take_over(root: Path, count: int) -> None:
    shutil.rmtree(root / "store", ignore_errors=True)
    shutil.copytree(stored(count), root / "store")


class LocalSubject:
    """Programs that one after the other change the same directory."""

    def __init__(self, world: LocalWorld, workload: LocalWorkload) -> None:
        self.world, self._workload = world, workload

    def steps(self) -> Iterator[Step]:
        self._workload.prepare(self.world.root)
        yield Step("find", lambda: None)
        self.world.watch()
        yield from self._workload.script(self.world.root)

    def look(self) -> View:
        with self.world.unwatched():
            return self._workload.look(self.world.root)

    def left(self) -> View:
        with self.world.left() as path:
            return self._workload.look(path)

    def revive(self) -> None:
        """Do nothing: each step is a program of its own."""

    def close(self) -> None:
        self.world.close()


def _nothing(_: Path) -> None:
    pass


@dataclass
class LocalWorkload:
    """A script of programs, and how their files are read."""

    name: str
    script: Script
    look: Callable[[Path], View]
    prepare: Callable[[Path], None] = _nothing
    failures: Sequence[str] = LOCAL_FAILURES

    def begin(self, failure: str, at: int) -> tuple[World, LocalSubject]:
        world = LocalWorld(failure, at)
        return world, LocalSubject(world, self)


def _archives(root: Path) -> Iterator[Step]:
    act = lambda: archive(root / "store", LocalTarget(root / "archive"))  # noqa: E731
    yield Step("archive", act)
    yield Step("archive again", act)


def _messages(path: Path) -> Mapping[str, object]:
    if not (path / "manifest.json").exists():
        return {}
    with StoreReader.open(open_place(str(path))) as reader:
        return {
            f"queue {queue_id}": tuple(
                record.body[:3] for record in reader.get(TOPIC, queue_id, 0, 1000).records
            )
            for queue_id in (0, 1)
        }


def _look_at_archive(root: Path) -> View:
    return _messages(root / "archive")


def _converts(root: Path) -> Iterator[Step]:
    act = lambda: convert_to_kafka(root / "store", LocalEngine(1), out=root / "kafka")  # noqa: E731
    yield Step("convert", act, is_atomic=True)


def _look_at_logs(root: Path) -> View:
    if not (root / "kafka").is_dir():
        return {}
    logs, seen = LogDirectory(LocalDirectory(root / "kafka")), dict[str, object]()
    for name in logs.partitions():
        with logs.partition(name.topic, name.partition) as partition:
            seen[f"{name.topic}/{name.partition}"] = tuple(
                record.offset for record in partition.records()
            )
    return seen | {"names": tuple(sorted(path.name for path in root.iterdir()))}


def _keeps_values(root: Path) -> Iterator[Step]:
    values = KvConfig(str(root / "kv" / "config.json"))
    settings = NamesrvSettings()
    yield Step("start", values.load)
    for number in range(4):
        put = lambda number=number: asyncio.run(  # noqa: E731
            values.put("names", f"k{number % 3}", f"v{number}", settings)
        )
        yield Step(f"put {number}", put)
    yield Step("delete", lambda: asyncio.run(values.delete("names", "k1")))


def _look_at_values(root: Path) -> View:
    values = KvConfig(str(root / "kv" / "config.json"))
    values.load()
    return values.namespace("names") or {}


_QUEUES = [MessageQueue(TOPIC, "broker-a", number) for number in range(3)]


def _keeps_offsets(root: Path) -> Iterator[Step]:
    for number in range(3):
        offsets = LocalOffsets("client", "group", root)
        for queue in _QUEUES:
            commit = lambda offsets=offsets, queue=queue, number=number: asyncio.run(  # noqa: E731
                offsets.commit(queue, number + 1)
            )
            yield Step(f"commit {number} of {queue.queue_id}", commit)


def _look_at_offsets(root: Path) -> View:
    async def read() -> View:
        offsets = LocalOffsets("client", "group", root)
        return {f"{queue.queue_id}": await offsets.read(queue) for queue in _QUEUES}

    return asyncio.run(read())


LOCAL_WORKLOADS: list[LocalWorkload] = [
    LocalWorkload("archive", _archives, _look_at_archive, lambda root: take_over(root, 16)),
    LocalWorkload("convert", _converts, _look_at_logs, lambda root: take_over(root, 8)),
    LocalWorkload("values", _keeps_values, _look_at_values),
    LocalWorkload("offsets", _keeps_offsets, _look_at_offsets),
]
