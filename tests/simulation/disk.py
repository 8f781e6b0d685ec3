"""A simulated disk, which survives its machine's processes, and power cuts in part."""

from __future__ import annotations

import random
from collections.abc import Callable

from mqlake.storage.clock import Clock
from tests.crash.disk import RecordedDisk
from tests.crash.images import PowerCuts
from tests.crash.pending import PendingDisk
from tests.crash.snapshot import Snapshot
from tests.crash.trace import ROOT, Step


class _WatchedDisk(RecordedDisk):
    """A disk that calls a function after a number of steps.

    Attributes:
        steps_left: until the call; None for never.
        on_last_step: what is called.
    """

    def __init__(self, content: Snapshot, clock: Clock) -> None:
        self.steps_left: int | None = None
        self.on_last_step: Callable[[], object] = lambda: None
        super().__init__(content, clock)

    def record(self, step: Step) -> None:
        super().record(step)
        if self.steps_left is not None:
            self.steps_left -= 1
            if self.steps_left <= 0:
                self.steps_left = None
                self.on_last_step()


class SimulatedDisk:
    """The disk of one machine.

    Attributes:
        tree: what the process that runs now reads and writes.
    """

    def __init__(self, clock: Clock, dice: random.Random) -> None:
        self._clock, self._dice = clock, dice
        self._pending = PendingDisk(Snapshot({ROOT: {}}, {}))
        self.tree = _WatchedDisk(self._pending.now(), clock)
        self._kept = -1

    def after_steps(self, steps: int, function: Callable[[], object]) -> None:
        """Call a function after so many more steps: what the process does then comes too late."""

        def end() -> None:
            self._kept = len(self.tree.trace)
            function()

        self.tree.steps_left, self.tree.on_last_step = steps, end

    def spare(self) -> None:
        """Forget what `after_steps` was told, unless it has happened."""
        self.tree.steps_left = None

    @property
    def steps(self) -> int:
        """Return how many steps the process has done."""
        return len(self.tree.trace)

    def end_process(self) -> None:
        """Let the process go: what it wrote stays."""
        self._apply()
        self._begin(self._pending.now())

    def cut_power(self) -> None:
        """Lose what was not synced, or a part of it."""
        self._apply()
        image = PowerCuts(self._pending).draw(self._dice)
        self._pending = PendingDisk(image)
        self._begin(image)

    def _apply(self) -> None:
        trace = self.tree.trace
        for step in trace if self._kept < 0 else trace[: self._kept]:
            self._pending.apply(step)

    def _begin(self, content: Snapshot) -> None:
        self._kept = -1
        self.tree = _WatchedDisk(content, self._clock)
