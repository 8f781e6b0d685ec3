"""What clients were promised, and what becomes of it when topics and groups are deleted."""

from __future__ import annotations

import asyncio
import math
from collections import defaultdict
from dataclasses import dataclass, field
from enum import Enum


class Fate(Enum):
    """What must become of a message."""

    LIVES = "lives"
    DIED = "died"
    OPEN = "open"
    """Not known: its send, or a deletion, was not answered, or both happened at the same time."""


@dataclass
class Action:
    """Something that a client asked for.

    Attributes:
        begin, end: when it was asked for, and answered, in ticks; `end` is infinite if it was not
            answered with success.
        over: when it can no longer take effect, if that is known.
    """

    begin: int
    end: float = math.inf
    over: float = math.inf


@dataclass
class Sent(Action):
    """A message."""

    topic: str = ""


@dataclass
class Promises:
    """Messages by their bodies, deletions, and what groups have got."""

    sent: dict[str, Sent] = field(default_factory=dict[str, Sent])
    deleted: dict[str, list[Action]] = field(default_factory=lambda: defaultdict(list))
    got: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    acknowledged: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    violations: list[str] = field(default_factory=list[str])
    _ages: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    _again: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    _history: list[str] = field(default_factory=list[str])
    _ticks: int = 0

    def note(self, what: str) -> None:
        """Note an event, for who reads a violation."""
        self._history.append(f"{asyncio.get_running_loop().time():.2f} {what}")

    def _violated(self, what: str, body: str) -> None:
        """Note a violation, with what is known of a message."""
        lines = [each for each in self._history if f" {body}" in f"{each} " or " ! " in each]
        self.violations.append("\n   ".join([what, *lines]))

    def tick(self) -> int:
        """Return a number that is larger than all before it."""
        self._ticks += 1
        return self._ticks

    def fate(self, body: str, at: float) -> Fate:
        """Return what must have become of a message for a request that begins at a tick."""
        message = self.sent[body]
        deletions = self.deleted[message.topic]
        if any(message.end < each.begin and each.end < at for each in deletions):
            return Fate.DIED
        if math.isinf(message.end) or any(each.over > message.begin for each in deletions):
            return Fate.OPEN
        return Fate.LIVES

    def delivered(self, group: str, body: str, asked: int) -> None:
        """Note that a request that began at a tick was answered with a message."""
        if body not in self.sent:
            self.violations.append(f"{group} got {body!r}, which nobody sent")
            return
        self.note(f"{group} got {body} ")
        if self.fate(body, asked) is Fate.DIED:
            self._violated(f"{group} got {body}, which died with {self.sent[body].topic}", body)
        if body in self.acknowledged[group]:
            self._violated(f"{group} got {body} again, which it acknowledged", body)
        self.got[group].add(body)

    def age(self, group: str) -> int:
        """Return a number that changes whenever a group may lose what it has acknowledged."""
        return self._ages[group]

    def acknowledge(self, group: str, body: str, age: int) -> None:
        """Note that a message is acknowledged which the group got at some age."""
        if age == self._ages[group] and body not in self._again[group]:
            self.note(f"{group} acknowledged {body} ")
            self.acknowledged[group].add(body)

    def begin_anew(self, group: str) -> None:
        """Note that a group is being deleted, with its offsets, or has been."""
        self._ages[group] += 1
        self.acknowledged.pop(group, None)

    def begin_again(self, *groups: str) -> None:
        """Note that groups may get again whatever was sent until now.

        What is delayed may even be stored twice.
        """
        for group in groups:
            self._ages[group] += 1
            self.acknowledged.pop(group, None)
            self._again[group] |= self.sent.keys()

    def check(self, group: str, topic: str, got: set[str]) -> None:
        """Compare what a group has got, in all, of a topic."""
        now = self.tick()
        missing = [
            body
            for body, message in self.sent.items()
            if message.topic == topic and body not in got and self.fate(body, now) is Fate.LIVES
        ]
        if missing:
            what = f"{group} never got {len(missing)} of {topic}: {missing[:5]}"
            self._violated(what, missing[0])
