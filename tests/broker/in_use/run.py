"""One run, drawn from a seed."""

from __future__ import annotations

import asyncio
import logging
import math
import random
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from mqlake.jobs.local import LocalEngine
from mqlake.jobs.verify import verify
from tests import simulated
from tests.broker.in_use.administrator import GROUPS, LITE_GROUP, Administrator
from tests.broker.in_use.place import Place
from tests.broker.in_use.promises import Promises
from tests.broker.in_use.users import (
    PARENT,
    QUEUES,
    TOPICS,
    LiteConsumer,
    PopConsumer,
    Producer,
    PullConsumer,
)

SECONDS = 40.0
"""How long everything is in use."""
_DUE = 30.0
"""Seconds after which no message waits any more."""
_LOOKS = 12
_LONG = 300


class _Errors(logging.Handler):
    """Collects what the product logs as errors."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.found.append(f"logged: {record.getMessage()}")


@dataclass
class Outcome:
    """What came of some runs.

    Attributes:
        sent: acknowledged messages.
        got: deliveries of a message to a group, the first of each.
        deletions: answered deletions of topics.
    """

    runs: int = 0
    sent: int = 0
    got: int = 0
    deletions: int = 0
    violations: list[str] = field(default_factory=list[str])

    def add(self, seed: int, promises: Promises) -> None:
        """Add a run."""
        self.runs += 1
        self.sent += sum(each.end < math.inf for each in promises.sent.values())
        self.got += sum(map(len, promises.got.values()))
        deletions = (each for found in promises.deleted.values() for each in found)
        self.deletions += sum(each.end < math.inf for each in deletions)
        self.violations += [f"seed {seed}: {each}" for each in promises.violations]


def run(count: int, seed: int, progress: Callable[[int], object] = lambda _: None) -> Outcome:
    """Run so many seeds from one on."""
    outcome = Outcome()
    for number in range(count):
        with tempfile.TemporaryDirectory() as directory:
            outcome.add(seed + number, one(Path(directory), seed + number))
        progress(number + 1)
    return outcome


def one(path: Path, seed: int) -> Promises:
    """Run a seed, in a directory that is empty."""
    errors = _Errors()
    logger = logging.getLogger("mqlake")
    logger.addHandler(errors)
    try:
        promises = simulated.run(_run(path, random.Random(seed)))
    finally:
        logger.removeHandler(errors)
    promises.violations += errors.found
    return promises


async def _run(path: Path, dice: random.Random) -> Promises:
    place, promises = Place(path), Promises()
    known = (place, promises)
    administrator = Administrator(*known, dice)
    pops = [PopConsumer(*known, dice, topic, group) for topic in TOPICS for group in GROUPS]
    pulls = [PullConsumer(*known, dice, topic, f"readers{topic}") for topic in TOPICS]
    lites = [LiteConsumer(*known, dice, name, LITE_GROUP) for name in ("left", "right")]
    producers = [Producer(*known, dice) for _ in range(3)]
    async with place.open():
        await administrator.make_all()
        until = asyncio.get_running_loop().time() + SECONDS
        users = [administrator, *pops, *pulls, *lites, *producers]
        async with asyncio.TaskGroup() as group:
            for user in users:
                group.create_task(user.work(until))
        await administrator.make_all()
        await asyncio.sleep(_DUE)
        await _check(place, promises, pops, lites[0])
        for user in users:
            await user.connection.close()
        store = await place.stop()
    found = verify(store, LocalEngine(1))
    promises.violations += [f"verify: {each}" for each in found.damage]
    return promises


async def _check(
    place: Place, promises: Promises, pops: list[PopConsumer], lite: LiteConsumer
) -> None:
    """Let consumers get what is left, and compare what they have got."""
    dice = random.Random(0)
    for consumer in pops:
        for _ in range(_LOOKS):
            while left := await consumer.pop(_LONG):
                for each in left:
                    await consumer.acknowledge(each)
            await asyncio.sleep(5)
        promises.check(consumer.group, consumer.topic, promises.got[consumer.group])
    for topic in TOPICS:
        reader = PullConsumer(place, promises, dice, topic, f"fresh{topic}")
        for queue_id in range(QUEUES):
            while await reader.pull(queue_id) is not None:
                pass
        promises.check(reader.group, topic, promises.got[reader.group])
        await reader.connection.close()
    await lite.subscribe()
    for _ in range(_LOOKS):
        while left := await lite.pop(_LONG):
            for record, receipt in left:
                await lite.acknowledge(record, receipt)
        await asyncio.sleep(5)
    promises.check(lite.group, PARENT, promises.got[lite.group])
