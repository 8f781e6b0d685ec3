"""Choose the kernels of light queues: compiled, or their readable twin (`kernels.choice`).

`python -m mqlake.store.light.light_kernel` fills the cache of kernels once, at set-up.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from mqlake.dispatch.batch import Batch, Ints
from mqlake.kernels.choice import chosen
from mqlake.store.light.light_columns import (
    LightAppended,
    LightBounds,
    LightBuffer,
    LightMessages,
    Newest,
    NewestRows,
)


class LightKernel(Protocol):
    """What the compiled kernels and the reference both do. Nothing here raises on bad bytes."""

    def find(
        self, batch: Batch, topics: Ints, first: int, seed: int, messages: LightMessages
    ) -> tuple[int, int]:
        """Fill a row for each light queue of each record, in the log's order.

        Args:
            topics: i4[n], by the number of a queue in the batch's table: the number of its topic;
                -1 if its records are in no light queue.
            first: row of the first record.
            seed: of the hashes of names.
            messages: has room for those of one record at least.

        Returns:
            How many rows were filled, and the row of the first record that has no room.
        """
        ...

    def append(
        self,
        file: LightBuffer,
        newest: Newest,
        messages: LightMessages,
        first: int,
        bounds: LightBounds,
        accepted: npt.NDArray[np.bool_],
    ) -> LightAppended:
        """Append the entries of messages of one topic from row `first` on, in the log's order.

        Those that do not fit are left out.

        Args:
            accepted: for each row, whether the message is in its light queue.
        """
        ...

    def collect(self, file: LightBuffer, number: int, newest: Newest) -> int:
        """Note the entries of a file from a number on; return the first one that has no room."""
        ...

    def move(self, source: NewestRows, newest: Newest, low: int) -> None:
        """Note the rows of another table whose physical offsets are not before `low`."""
        ...


def load() -> LightKernel:
    """Return the kernels that MQLAKE_KERNEL chooses."""
    if chosen() == "reference":
        from mqlake.store.light import reference

        return reference
    from mqlake.store.light import compiled

    return compiled


def warm_up() -> None:
    """Compile the kernels, or load them from the cache, before the first message needs them."""
    if chosen() != "reference":
        from mqlake.store.light.compiled import load_all

        load_all()


if __name__ == "__main__":
    warm_up()
