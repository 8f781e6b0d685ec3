"""Messages that are to become records, as columns (`mqlake.dispatch.writing.encode`).

Positions (`*_at`) and lengths are bytes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mqlake.dispatch.batch import Bytes

DRAFT = np.dtype(
    [
        ("body_at", "i8"),  # in Drafts.source
        ("properties_at", "i8"),  # in Drafts.texts
        ("born_timestamp", "i8"),  # milliseconds; 0: the time at which it is stored
        ("prepared_transaction_offset", "i8"),
        ("physical_offset", "i8"),  # filled when it is written, as the next two
        ("queue_offset", "i8"),
        ("size", "i8"),
        ("body_length", "i4"),
        ("properties_length", "i4"),
        ("queue", "i4"),  # row of Routes.queues
        ("host", "i4"),  # row of Routes.hosts
        ("queue_id", "i4"),
        ("flag", "i4"),
        ("sys_flag", "i4"),
        ("reconsume_times", "i4"),
        ("regular", "i4"),  # 0: something about it is unusual; the other columns mean nothing
    ],
    align=True,
)

QUEUE_ROUTE = np.dtype(
    [
        ("next_offset", "i8"),  # the queue offset that the queue's next message gets
        ("magic", "i8"),
        ("part_at", "i4"),  # the topic, its length before it, as a record has them
        ("part_length", "i4"),  # -1: the topic is not taken
    ],
    align=True,
)

HOST_ROUTE = np.dtype([("part_at", "i4"), ("part_length", "i4")], align=True)

Rows = npt.NDArray[np.void]
"""An array of DRAFT, QUEUE_ROUTE or HOST_ROUTE."""


class Drafts(NamedTuple):
    """Messages, a row each, and the bytes that the rows point into.

    Wherever they come from, the bytes are read-only arrays: Numba compiles a kernel again for
    writable ones, and a broker would do so when its first batch arrives.
    """

    source: Bytes
    texts: Bytes
    rows: Rows


class Routes(NamedTuple):
    """What records of the same queue, or from the same host, have in common."""

    queues: Rows
    hosts: Rows
    """Of producers; the last one is the store's own."""
    parts: Bytes
    """What the positions in both are in."""
