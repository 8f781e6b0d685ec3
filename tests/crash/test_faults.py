"""A disk that refuses the operations of a workload in turn; `make nightly` tries every one."""

from __future__ import annotations

import pytest

from tests.crash import faults
from tests.crash.faulty import Fault
from tests.crash.workloads import WORKLOADS

NAMES = (
    "put", "put-synced", "put-many", "batch", "group-commit", "big-messages", "roll-synced",
    "queue-roll", "index-roll", "everything-rolls", "checkpoints", "restart", "kill-synced",
    "consumer-offsets", "retention", "delayed", "transactions",
)  # fmt: skip
EVERY = 7
"""One operation in so many."""


@pytest.mark.parametrize("name", NAMES)
def test_faults(name: str) -> None:
    workload, failed = WORKLOADS[name], 0
    for number, fault in enumerate(Fault):
        at = 1 + number % EVERY
        while faults.run(workload, fault, at).has_failed:
            failed, at = failed + 1, at + EVERY
    assert failed > len(Fault)


@pytest.mark.parametrize(("fault", "at"), [(Fault.SYNC_ONCE, 9), (Fault.INPUT_OUTPUT, 28)])
def test_names_lost_while_a_table_was_written_do_not_count_as_kept(fault: Fault, at: int) -> None:
    """The directory of the queues is made, then that of the tables, and the sync of both fails."""
    assert faults.run(WORKLOADS["consumer-offsets-and-stop"], fault, at).has_failed
