"""A disk that refuses the operations of a workload in turn; `make nightly` tries every one."""

from __future__ import annotations

import pytest

from tests.crash import faults
from tests.crash.faults import Ending
from tests.crash.faulty import Fault
from tests.crash.workloads import WORKLOADS

NAMES = (
    "put", "put-synced", "put-many", "batch", "group-commit", "big-messages", "roll-synced",
    "queue-roll", "index-roll", "everything-rolls", "checkpoints", "restart", "kill-synced",
    "consumer-offsets", "retention", "delayed", "timers", "transactions", "by-the-clock",
)  # fmt: skip
FIRST, EVERY = 9, 19
"""The first operation is one of so many; of those after it, one in so many, or in a few more.

Each workload and each fault has other ones, so that few of all are never tried.
"""


@pytest.mark.parametrize("name", NAMES)
def test_faults(name: str) -> None:
    workload, endings = WORKLOADS[name], list[Ending | None]()
    for number, fault in enumerate(Fault):
        at = 1 + (NAMES.index(name) + number) % FIRST
        while (done := faults.run(workload, fault, at)).has_failed:
            endings.append(done.ending)
            at += EVERY + number
    assert len(endings) > len(Fault)
    # Which other endings so few operations have is chance.
    assert Ending.FINAL in endings
    assert len({*endings}) > 1


@pytest.mark.parametrize(
    ("name", "fault", "at"),
    [
        # The names of the queues' directory and the tables' one, lost by the same sync.
        ("consumer-offsets-and-stop", Fault.SYNC_ONCE, 9),
        ("consumer-offsets-and-stop", Fault.INPUT_OUTPUT, 28),
        # A file of the log that retention removed, and that comes back.
        ("retention", Fault.SYNC_ONCE, 20),
        ("retention-of-queues-and-index", Fault.SYNC_ONCE, 40),
        # The timer log, which only RocketMQ reads.
        ("timers-stopped", Fault.SYNC_ONCE, 10),
    ],
)
def test_a_failed_sync_that_another_one_seemed_to_make_good(
    name: str, fault: Fault, at: int
) -> None:
    assert faults.run(WORKLOADS[name], fault, at).has_failed
