"""The position of a streaming query, as Spark writes it into its checkpoint.

    {"physicalOffset": 4096, "fingerprint": 2774861}
    {"physicalOffset": 4096, "starts": {"TopicA": {"0": 23}}, "startsEnd": 9000}
    {"physicalOffset": 4096, "fingerprint": 2774861, "subscription": "{\"subscribe\":[\"TopicA\"]}"}

The log is one sequence of bytes, so one number states what was read of all topics and queues,
including later ones. `fingerprint` identifies the log before that offset, `subscription` contains
the options that selected messages (`subscribed.described`); checkpoints of earlier versions lack
one or both. `starts` are queue offsets at which options let the query start; they have no effect
from the physical offset `startsEnd` on. `deadBefore` and `othersDeadBefore` say which messages had
been deleted with their topics when the query started: those before a physical offset, by topic.
"""

from __future__ import annotations

from typing import Any

import msgspec

from mqlake.errors import StoreError
from mqlake.query.reading.conditions import MOST, InQueues, Living, Selection
from mqlake.query.reading.queue_json import Numbers


class _StorePositionJson(
    msgspec.Struct, rename="camel", forbid_unknown_fields=True, omit_defaults=True
):
    physical_offset: int
    fingerprint: int | None = None
    starts: dict[str, dict[int, int]] = {}
    starts_end: int = 0
    subscription: str | None = None
    dead_before: dict[str, int] = {}
    others_dead_before: int = 0


class StorePosition(msgspec.Struct, frozen=True):
    """A physical offset, which is a boundary, and starts of queues while they have an effect.

    Attributes:
        fingerprint: of the log before the offset; None if unknown.
        subscription: the options that selected messages, as text; None if unknown.
        living: which messages had been deleted when the query started; None if none.
    """

    physical_offset: int
    starts: Numbers = {}
    starts_end: int = 0
    fingerprint: int | None = None
    subscription: str | None = None
    living: Living | None = None

    @classmethod
    def read(cls, written: dict[str, Any]) -> StorePosition:
        """Return the position of a checkpoint.

        Raises:
            StoreError: the checkpoint is not one of this source.
        """
        try:
            found = msgspec.convert(written, _StorePositionJson, strict=False)
        except msgspec.ValidationError as error:
            raise StoreError(f"the checkpoint is not one of this source: {error}") from None
        starts = {
            (topic, queue_id): offset
            for topic, queues in found.starts.items()
            for queue_id, offset in queues.items()
        }
        living = Living(found.dead_before, found.others_dead_before)
        return cls(
            found.physical_offset,
            starts,
            found.starts_end,
            found.fingerprint,
            found.subscription,
            living if living.end else None,
        )

    def write(self) -> dict[str, Any]:
        """Return the text for Spark's checkpoint."""
        starts: dict[str, dict[int, int]] = {}
        for (topic, queue_id), offset in sorted(self.starts.items()):
            starts.setdefault(topic, {})[queue_id] = offset
        living = self.living or Living({})
        written = _StorePositionJson(
            physical_offset=self.physical_offset,
            fingerprint=self.fingerprint,
            starts=starts,
            starts_end=self.starts_end,
            subscription=self.subscription,
            dead_before=living.befores,
            others_dead_before=living.others,
        )
        return msgspec.to_builtins(written, str_keys=True)

    def at(
        self, physical_offset: int, fingerprint: int | None, subscription: str | None
    ) -> StorePosition:
        """Return the position at another physical offset, without what no longer matters."""
        is_past = physical_offset >= self.starts_end
        starts, starts_end = ({}, 0) if is_past else (self.starts, self.starts_end)
        living = self.living if self.living and physical_offset < self.living.end else None
        return StorePosition(physical_offset, starts, starts_end, fingerprint, subscription, living)

    @property
    def selection(self) -> Selection:
        """The conditions of the starts, and of deleted topics."""
        ranges = {queue: (offset, MOST) for queue, offset in self.starts.items()}
        starts = (InQueues(ranges, others=True),) if ranges else ()
        return starts if self.living is None else (*starts, self.living)


def parse_position(text: str) -> dict[str, Any]:
    """Return the position in JSON; raise ValueError if it is not a position."""
    try:
        return StorePosition.read(msgspec.json.decode(text)).write()
    except (msgspec.MsgspecError, StoreError):
        raise ValueError('a position as JSON, such as {"physicalOffset": 4096}') from None
