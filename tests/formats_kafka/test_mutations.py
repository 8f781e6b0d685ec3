from __future__ import annotations

from tests.formats_kafka import mutations


def test_changed_batches() -> None:
    # The records that survive show that reading goes deep, not only to the first check.
    assert mutations.run(20_000, seed=20261121) > 5_000
