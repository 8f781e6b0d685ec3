"""Notes of followers are read as they were first written, whatever modules the code is in.

The texts were written by version 0.1 before tables left `spark/`.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from mqlake.lake.files.data_file import DataFile
from mqlake.lake.follow.letter_replay import JOURNAL, LetterReplay
from mqlake.lake.followers.follower_notes import FOLLOWERS
from mqlake.lake.followers.identity import (
    NAME,
    CheckpointIdentity,
    Follower,
    followers_of,
    identity_of,
)
from mqlake.lake.options import STATE

IDENTITY = (
    '{"id":"0f","store":"/store","target":"delta:/table","begin":{"physicalOffset":0},'
    '"source":{"subscribe":"orders"}}'
)
FOLLOWER = (
    '{"store":"/store","checkpoint":"/cp","begin":{"physicalOffset":0},'
    '"source":{"subscribe":"orders"},"upsert_by":"keys"}'
)
REPLAY = (
    '{"number":3,"files":[{"path":"/t/a.parquet","topic":"A","day":"2026-01-02","rows":2,'
    '"size":100,"least":{"size":1},"most":{"size":9}}]}'
)


def test_a_checkpoint_says_what_it_belongs_to(tmp_path: Path) -> None:
    (tmp_path / NAME).write_text(IDENTITY)
    source = {"subscribe": "orders"}
    expected = CheckpointIdentity("0f", "/store", "delta:/table", {"physicalOffset": 0}, source)
    assert NAME == "mqlake-follow.json"
    assert identity_of(tmp_path) == expected
    assert msgspec.json.encode(expected).decode() == IDENTITY


def test_a_table_says_who_follows(tmp_path: Path) -> None:
    notes = tmp_path / STATE / FOLLOWERS
    notes.mkdir(parents=True)
    (notes / "0f.json").write_text(FOLLOWER)
    source = {"subscribe": "orders"}
    expected = Follower("/store", "/cp", {"physicalOffset": 0}, source, "keys")
    assert notes.relative_to(tmp_path) == Path("_mqlake/followers")
    assert followers_of(str(tmp_path)) == {"0f": expected}
    assert msgspec.json.encode(expected).decode() == FOLLOWER


def test_a_replay_that_was_begun_is_continued() -> None:
    file = DataFile("/t/a.parquet", "A", "2026-01-02", 2, 100, {"size": 1}, {"size": 9})
    assert JOURNAL == "mqlake-replay.json"
    assert msgspec.json.decode(REPLAY, type=LetterReplay) == LetterReplay(3, [file])
    assert msgspec.json.encode(LetterReplay(3, [file])).decode() == REPLAY
