"""Everything that was derived since the last checkpoint is lost: 64 MiB of the log are read."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqlake.storage.local_owned import LocalOwnedDirectory
from mqlake.store.core import durability
from mqlake.store.owned_store import OwnedStore
from mqlake.store.settings import StoreSettings
from tests.store.lost_tail import entries, lose

SETTINGS = StoreSettings(
    mapped_file_size_commit_log=1 << 24,
    mapped_file_size_consume_queue=20_000,
    max_hash_slot_num=1000,
    max_index_num=2000,
)


@pytest.mark.parametrize(
    ("body", "most"), [(1 << 14, durability._MOST_TO_READ), (300, 1 << 20), (1, 1 << 18)]
)
def test_what_no_checkpoint_covers_is_derived_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: int, most: int
) -> None:
    monkeypatch.setattr(durability, "_MOST_TO_READ", most)
    path = tmp_path / "store"
    path.mkdir()
    lost = lose(path, SETTINGS, 200, body)
    assert lost.messages > 100

    store = OwnedStore.open(LocalOwnedDirectory(path), SETTINGS)
    assert store.recovered.start == lost.checkpoint
    assert store.log.end - lost.checkpoint >= most
    assert entries(store) == lost.entries
    store.close()
