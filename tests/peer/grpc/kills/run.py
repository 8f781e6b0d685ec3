"""One run: the clients of all languages use servers that are killed, and what must be true then."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

from mqlake.admin import groups, topics
from mqlake.admin.admin import Admin
from mqlake.formats.config.subscription_group import SubscriptionGroup
from mqlake.formats.config.topics import Topic
from tests.peer.grpc.driver import Client, ClientMissingError
from tests.peer.grpc.kills.plan import Kill, draw
from tests.peer.grpc.kills.servers import SETUPS, Servers
from tests.peer.grpc.kills.traffic import FIFO, PLAIN, Traffic, group_of, readers_of, topic_of

KILLS = 100
"""Kills of a run."""
CONTINUES = 180.0
"""Seconds within which each group of consumers must receive something new after a kill, and after
the last one everything that is left.
"""
_LOOK = 0.02
_KINDS = {PLAIN: "NORMAL", FIFO: "FIFO"}
_QUEUES = 8
_RETRIES = 1000
"""No message becomes a dead letter because servers were killed often."""


@dataclass
class Counts:
    """What the clients of one language did.

    Attributes:
        acknowledged: messages for which a send succeeded.
        refused: sends that failed.
        deliveries: of all groups.
        repeated: those of them that repeat another one.
        longest: seconds from a restart until each group had received something new, at most.
    """

    acknowledged: int = 0
    refused: int = 0
    deliveries: int = 0
    repeated: int = 0
    longest: float = 0.0


@dataclass
class Outcome:
    """What a run came to.

    Attributes:
        setup: one of SETUPS.
        drained: seconds until everything was received once the kills were over.
        languages: by the name of the language.
    """

    seed: int
    setup: str
    violations: list[str] = field(default_factory=list)
    kills: Counter[str] = field(default_factory=Counter)
    drained: float = 0.0
    seconds: float = 0.0
    languages: dict[str, Counts] = field(default_factory=dict)


def command(outcome: Outcome) -> str:
    """Return the command that repeats a run."""
    kills, languages = outcome.kills.total(), " ".join(outcome.languages)
    options = f"--setup '{outcome.setup}' --kills {kills} --languages {languages}"
    return f"python -m tests.peer.grpc.kills --seed {outcome.seed} {options}"


def run(
    seed: int,
    setup: str,
    languages: Sequence[str],
    kills: int = KILLS,
    tell: Callable[[str], object] = str,
) -> Outcome:
    """Run one seed; a language whose client is missing is left out.

    Args:
        tell: called with each line about the progress.
    """
    begun, outcome = time.monotonic(), Outcome(seed, setup)
    with tempfile.TemporaryDirectory(prefix="mqlake-kills-") as directory:
        servers = SETUPS[setup](Path(directory))
        try:
            asyncio.run(_Run(outcome, servers, tell).run(Path(directory), languages, kills))
        finally:
            servers.close()
    outcome.seconds = time.monotonic() - begun
    return outcome


class _Run:
    def __init__(self, outcome: Outcome, servers: Servers, tell: Callable[[str], object]) -> None:
        self._outcome, self._servers, self._tell = outcome, servers, tell
        self._all: list[Traffic] = []

    async def run(self, directory: Path, languages: Sequence[str], kills: int) -> None:
        """Start the clients, do the kills, and note the outcome."""
        async with AsyncExitStack() as stack:
            for language in languages:
                await prepare(self._servers.names, language)
                place = directory / language
                try:
                    client = await Client.start(language, self._servers.endpoint, place)
                except ClientMissingError as reason:
                    self._tell(f"without the client for {language}: {reason}")
                    continue
                stack.push_async_callback(client.close)
                traffic = Traffic(client)
                stack.push_async_callback(traffic.close)
                self._all.append(traffic)
                self._outcome.languages[language] = Counts()
            await asyncio.gather(*(each.start() for each in self._all))
            await self._do_all(draw(self._outcome.seed, kills, self._servers.kinds))
            for each in self._all:
                self._count(each)

    async def _do_all(self, kills: Sequence[Kill]) -> None:
        if not await self._has_continued(time.monotonic()):
            return
        for number, kill in enumerate(kills, 1):
            await self._more(kill.messages)
            await asyncio.to_thread(self._servers.kill, kill.kind)
            await asyncio.sleep(kill.down)
            await asyncio.to_thread(self._servers.start, kill.kind)
            self._outcome.kills[kill.kind] += 1
            begun = time.monotonic()
            await asyncio.gather(*(each.restarted() for each in self._all))
            if not await self._has_continued(begun):
                return
            self._tell(f"{self._outcome.setup}: {number} of {len(kills)} kills")
        await asyncio.gather(*(each.stop_sending() for each in self._all))
        begun = time.monotonic()
        await self._until(lambda: not any(text for each in self._all for text in each.lost()))
        self._outcome.drained = time.monotonic() - begun
        self._outcome.violations += [text for each in self._all for text in each.violations()]

    async def _until(self, holds: Callable[[], bool]) -> bool:
        """Wait for a condition; return whether it holds in time."""
        end = time.monotonic() + CONTINUES
        while not holds():
            if time.monotonic() > end:
                return False
            await asyncio.sleep(_LOOK)
        return True

    async def _more(self, messages: int) -> None:
        """Wait until so many more messages were delivered."""
        wanted = messages + sum(each.deliveries for each in self._all)
        await self._until(lambda: sum(each.deliveries for each in self._all) >= wanted)

    async def _has_continued(self, begun: float) -> bool:
        """Wait until all groups continue; return whether they do, and note those that do not."""
        waiting = list(self._all)

        def has_continued() -> bool:
            for each in list(waiting):
                if next(each.standing(), None) is None:
                    waiting.remove(each)
                    counts = self._outcome.languages[each.language]
                    counts.longest = max(counts.longest, time.monotonic() - begun)
            return not waiting

        if await self._until(has_continued):
            return True
        late = f"within {CONTINUES:g} s after {self._outcome.kills.total()} kills"
        found = [f"{text} {late}" for each in waiting for text in each.standing()]
        self._outcome.violations += found
        return False

    def _count(self, traffic: Traffic) -> None:
        counts = self._outcome.languages[traffic.language]
        counts.acknowledged = sum(map(len, traffic.acknowledged.values()))
        counts.refused, counts.deliveries = traffic.refused, traffic.deliveries
        counts.repeated = sum(each.repeated for each in traffic.received.values())


async def prepare(names: str, language: str) -> None:
    """Create the topics and groups of a language."""
    async with Admin(names) as admin:
        for name, kind in _KINDS.items():
            topic = Topic(
                topic_name=topic_of(language, name),
                read_queue_nums=_QUEUES,
                write_queue_nums=_QUEUES,
            )
            await topics.update(admin, topic, None, "broker-a", f"+message.type={kind}")
        for reader in readers_of(language):
            group = SubscriptionGroup(
                group_name=group_of(language, reader),
                consume_message_orderly=reader.topic == FIFO,
                retry_max_times=_RETRIES,
            )
            await groups.update(admin, group, None, "broker-a")
