"""The findings of a check: exact counts, and the first few locations of each kind."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from mqlake.formats.damage import Damage

EXAMPLES = 100
"""The maximum number of locations of one kind in a report."""


class Finding(msgspec.Struct):
    """How often something was found, and the first locations."""

    count: int = 0
    examples: list[Damage] = []

    def add(self, count: int = 1) -> None:
        """Count findings without a location."""
        self.count += count

    def add_at(self, file: str, offset: int, length: int, reason: str) -> None:
        """Count one location: a file relative to the store, position and length in bytes."""
        self.count += 1
        if len(self.examples) < EXAMPLES:
            self.examples.append(Damage(file, offset, length, reason))

    def merge(self, other: Finding) -> None:
        """Add the findings of another task."""
        self.count += other.count
        self.examples += other.examples[: max(0, EXAMPLES - len(self.examples))]


class EntryFindings(msgspec.Struct):
    """The entries of one kind of derived file, compared with the records.

    Attributes:
        good: entries that agree with their record.
        missing: entries that a record should have, but lacks.
        wrong: entries at the position of a record that differ from it.
        dangling: entries that belong to no record of the log.
        undispatched: missing entries after what the broker had dispatched when it ended or was
            examined; RocketMQ writes them when it starts, or in a moment.
        lost: entries of records that are damaged themselves, or in a missing segment.
        expired: entries of records before the log's beginning, which RocketMQ has deleted.
        stale: entries of records past the log's end, which RocketMQ's recovery leaves.
        blank: entries with which RocketMQ fills a queue's file before its first record.
        dead: entries of records of deleted topics.
        repeated: records, or entries, that were dispatched a second time, and that RocketMQ dropped
            or kept twice.
    """

    good: int = 0
    missing: Finding = msgspec.field(default_factory=Finding)
    wrong: Finding = msgspec.field(default_factory=Finding)
    dangling: Finding = msgspec.field(default_factory=Finding)
    undispatched: int = 0
    lost: int = 0
    expired: int = 0
    stale: int = 0
    blank: int = 0
    dead: int = 0
    repeated: int = 0

    def merge(self, other: EntryFindings) -> None:
        """Add the findings of another task."""
        self.good += other.good
        self.missing.merge(other.missing)
        self.wrong.merge(other.wrong)
        self.dangling.merge(other.dangling)
        self.undispatched += other.undispatched
        self.lost += other.lost
        self.expired += other.expired
        self.stale += other.stale
        self.blank += other.blank
        self.dead += other.dead
        self.repeated += other.repeated

    @property
    def faults(self) -> list[Finding]:
        """The findings that are damage."""
        return [self.missing, self.wrong, self.dangling]


def merged(found: Iterable[EntryFindings]) -> EntryFindings:
    """Return the sum of the findings of several tasks."""
    total = EntryFindings()
    for each in found:
        total.merge(each)
    return total
