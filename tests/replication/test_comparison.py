"""What a slave asks its master for, and what it makes of the answer."""

from __future__ import annotations

from typing import Any

import pytest

from mqlake.replication.comparison import (
    SIZE_FIELD,
    Begin,
    BeginOtherwiseError,
    Comparison,
    DivergedError,
)
from mqlake.store.owned_store import OwnedStore
from mqlake.store.port import LogCopying
from tests.store.replication.test_received_log import SIZE, filled, opened


def copying_of(store: OwnedStore) -> LogCopying:
    """Return a store's log for a comparison, which reads and does nothing else."""
    unused: Any = None
    return LogCopying(store, unused, unused, unused, unused)


def test_a_master_that_lacks_its_first_files_is_asked_for_the_last_one_of_this_log() -> None:
    copying = copying_of(filled())
    first = Comparison(copying, 0, None)
    assert first.request == SIZE_FIELD
    with pytest.raises(BeginOtherwiseError) as otherwise:
        first.heartbeat(first.request)
    second = Comparison(copying, 0, None, begin=otherwise.value.begin)
    assert otherwise.value.begin is Begin.OWN_LAST_FILE
    assert second.request == copying.last_file == copying.end // SIZE * SIZE
    with pytest.raises(DivergedError, match="begins later"):
        second.heartbeat(second.request)


def test_an_empty_last_file_of_a_master_is_not_all_that_it_has() -> None:
    copying = copying_of(opened("SLAVE"))
    first = Comparison(copying, 0, None)
    first.heartbeat(0)
    with pytest.raises(BeginOtherwiseError) as otherwise:
        first.heartbeat(SIZE)
    assert Comparison(copying, 0, None, begin=otherwise.value.begin).request == SIZE_FIELD
