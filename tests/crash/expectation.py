"""What must be found after a crash, as the store itself said it while it ran."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

BATCHES = "batches"
"""The topic with batch consume queues."""


class Crash(Enum):
    """What ended: the process, and what was written is there, or the machine."""

    KILL = "kill"
    POWER_CUT = "power cut"


class Sent(NamedTuple):
    """A message that the store was given, or is about to be: it may be found from here on."""

    number: int


class Acknowledged(NamedTuple):
    """A message that survives the end of the process."""

    number: int


class Durable(NamedTuple):
    """A message, acknowledged before, that survives the end of the machine."""

    number: int


class Retired(NamedTuple):
    """A message that the store is about to delete: it need not be found from here on."""

    number: int


class ValueSet(NamedTuple):
    """A value, of those that only grow, that may be found from here on."""

    name: str
    value: int


class ValueKept(NamedTuple):
    """A value that survives the end of the machine: it, or a later one, is found."""

    name: str
    value: int


class ValueDropped(NamedTuple):
    """A value that is about to begin again: nothing is known of it from here on."""

    name: str


@dataclass
class Expectation:
    """What the notes up to some step say."""

    sent: set[int] = field(default_factory=set)
    acknowledged: set[int] = field(default_factory=set)
    durable: set[int] = field(default_factory=set)
    retired: set[int] = field(default_factory=set)
    highest: dict[str, int] = field(default_factory=dict)
    kept: dict[str, int] = field(default_factory=dict)

    def note(self, what: object) -> None:
        """Take in one more thing that the store said."""
        match what:
            case Sent(number):
                self.sent.add(number)
            case Acknowledged(number):
                self.acknowledged.add(number)
            case Durable(number):
                # A later sync says so of what was deleted in the meantime, too.
                if number not in self.retired:
                    self.durable.add(number)
            case Retired(number):
                self.retired.add(number)
                self.acknowledged.discard(number)
                self.durable.discard(number)
            case ValueSet(name, value):
                self.highest[name] = max(value, self.highest.get(name, value))
            case ValueKept(name, value):
                self.kept[name] = max(value, self.kept.get(name, value))
            case ValueDropped(name):
                self.highest.pop(name, None)
                self.kept.pop(name, None)
            case _:
                raise TypeError(f"not a note: {what!r}")

    def clone(self) -> Expectation:
        """Return what holds now, whatever is noted later."""
        return Expectation(
            set(self.sent),
            set(self.acknowledged),
            set(self.durable),
            set(self.retired),
            dict(self.highest),
            dict(self.kept),
        )

    def allow_lowered(self, found: Found) -> None:
        """Accept what the recovery that found this lowers, whenever it is crashed itself."""
        for name, value in found.lowered:
            self.kept[name] = min(self.kept.get(name, 0), value)

    def check(self, found: Found, crash: Crash) -> None:
        """Compare with what was found after a crash.

        Raises:
            ViolationError: something is missing, or there is something that was never sent.
        """
        needed = self.acknowledged if crash is Crash.KILL else self.durable
        lost, extra = needed - found.numbers, found.numbers - self.sent
        require(not lost, f"lost: messages {sorted(lost)}")
        require(not extra, f"messages that were not sent yet: {sorted(extra)}")
        values = dict(found.values)
        for name, value in self.highest.items():
            least, there = self.kept.get(name, 0), values.get(name, 0)
            require(least <= there <= value, f"{name} is {there}, not {least} … {value}")


@dataclass(frozen=True)
class Found:
    """What was read after a crash: numbers of messages, values by name.

    Attributes:
        values: as the crash left them.
        lowered: values that the recovery itself wrote, since what they count was lost.
    """

    numbers: frozenset[int]
    values: frozenset[tuple[str, int]] = frozenset()
    lowered: frozenset[tuple[str, int]] = frozenset()


class ViolationError(AssertionError):
    """Something that must hold after each crash does not."""


def require(holds: bool, what: str) -> None:
    """Raise a violation unless it holds."""
    if not holds:
        raise ViolationError(what)
