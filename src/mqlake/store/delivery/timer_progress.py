"""Up to where timer messages were delivered: before the start, and since.

Upstream: `TimerCheckpoint`, which RocketMQ writes whatever the log's state is.
"""

from __future__ import annotations

from mqlake.formats.timer_checkpoint import TimerPosition
from mqlake.store.delivery.after_flush import AfterFlush
from mqlake.store.delivery.timer_files import TimerFiles


class TimerProgress:
    """The position of delivery. The files get it once everything that was put is durable.

    Args:
        files: the timer checkpoint.
        known: the position at the start.

    Attributes:
        known: the position at the start.
    """

    def __init__(self, files: TimerFiles, known: TimerPosition) -> None:
        self._files = files
        self.known = self._noted = known
        self._waiting = AfterFlush[TimerPosition]()

    @property
    def is_kept(self) -> bool:
        """Return whether the files have the newest position, or will write it next."""
        return self._files.wanted == self._noted

    def was_delivered(self, queue_offset: int, slot: int) -> bool:
        """Return whether a message that is due after a slot (ms) was delivered before the start."""
        known = self.known
        if queue_offset >= known.taken_in:
            return False
        is_done_in_slot = slot == known.done_before and queue_offset < known.done_in_slot
        return slot < known.done_before or is_done_in_slot

    def note(self, position: TimerPosition, end: int) -> None:
        """Let a position wait until the log is durable before `end`, its physical offset now."""
        if position != self._noted:
            self._noted = position
            self._waiting.add(end, position)

    def keep(self, flushed: int) -> None:
        """Pass the newest position to the files for which the log is durable far enough.

        Args:
            flushed: the physical offset before which the log is durable.
        """
        position = self._waiting.take(flushed)
        if position is not None:
            self._files.write_next(position)
