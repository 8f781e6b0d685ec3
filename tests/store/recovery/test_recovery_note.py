"""What a broker's last start recovered, in a file of its store."""

from __future__ import annotations

from pathlib import Path

from mqlake.client.message import Message
from mqlake.storage.local import LocalDirectory
from mqlake.store.recovery.recovery_note import PATH, last_recovery
from mqlake.testing import broker


def test_a_start_notes_what_it_recovered(tmp_path: Path) -> None:
    with broker(tmp_path) as running, running.producer() as producer:
        first = last_recovery(LocalDirectory(tmp_path))
        assert first is not None
        assert first.is_clean
        assert first.records == 0
        producer.send(Message(topic="T", body=b"x"))
    (tmp_path / "abort").write_bytes(b"1")  # As if the process had been killed.
    with broker(tmp_path):
        second = last_recovery(LocalDirectory(tmp_path))
        assert second is not None
        assert not second.is_clean
        assert second.end == "unwritten"
        assert second.log_end > first.log_end
        assert second.time >= first.time


def test_a_note_that_cannot_be_read_is_none(tmp_path: Path) -> None:
    directory = LocalDirectory(tmp_path)
    assert last_recovery(directory) is None
    (tmp_path / "config").mkdir()
    for content in (b"", b"{", b"[]", b"\xff" * 100_000):
        (tmp_path / PATH).write_bytes(content)
        assert last_recovery(directory) is None
