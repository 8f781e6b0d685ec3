from __future__ import annotations

import pytest

from tests.kafka import mutations

pytestmark = pytest.mark.usefixtures("kernel")


@pytest.mark.timeout(120)
def test_changed_partitions() -> None:
    # The records that survive show that reading goes on after damage.
    assert mutations.run(400, seed=20261121) > 20_000
