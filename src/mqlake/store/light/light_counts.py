"""How many light queues topics have, without a look at their files."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mqlake.store.light.light_file import LightFile


class LightCounts:
    """The numbers of light queues, kept while their messages arrive and their files are removed.

    A queue is counted in the newest file that has it, so it ends with that file.
    """

    def __init__(self) -> None:
        self._counts: dict[str, dict[int, int]] = {}

    def count(self, topic: str) -> int:
        """Return how many light queues a topic has."""
        return sum(self._counts.get(topic, {}).values())

    def arrived(self, topic: str, base: int, before: int | None) -> None:
        """Note that a light queue has got a message.

        Args:
            base: base of the file with the message.
            before: base of the newest file that had the queue; None without one.
        """
        if base == before:
            return
        counts = self._counts.setdefault(topic, {})
        counts[base] = counts.get(base, 0) + 1
        if before is not None:
            counts[before] -= 1

    def removed(self, topic: str, base: int) -> None:
        """Note that a file was removed."""
        counts = self._counts.get(topic)
        if counts is not None:
            counts.pop(base, None)
            if not counts:
                del self._counts[topic]

    def adopt(self, topic: str, counts: dict[int, int]) -> None:
        """Take over what the files of a topic were found to have, by the base of each."""
        if counts:
            self._counts[topic] = counts


def counts_of_files(files: Sequence[LightFile]) -> dict[int, int]:
    """Count the light queues of which each file has the newest message, by the base of the file.

    Args:
        files: all files of a topic, newest first.
    """
    if len(files) == 1:
        return {files[0].base: files[0].queues}
    counts: dict[int, int] = {}
    seen = np.empty(0, np.uint64)
    for file in files:
        together = np.union1d(seen, file.names())
        counts[file.base] = len(together) - len(seen)
        seen = together
    return counts
