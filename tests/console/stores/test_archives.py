from __future__ import annotations

from pathlib import Path

from mqlake.console.stores.archives import archive_facts
from mqlake.console.stores.store_files import store_facts
from mqlake.jobs.archive.job import archive
from mqlake.storage.object_target import LocalTarget
from tests.golden import store


def test_shows_what_an_archive_has(tmp_path: Path) -> None:
    path = store("rmq5-clean").path
    archive(path, LocalTarget(tmp_path / "archive"))
    facts = archive_facts(str(tmp_path / "archive"))
    assert facts.problem is None
    known = store_facts(path)
    assert facts.start == known.log_start
    assert known.log_start < facts.end <= known.log_end
    assert facts.missing == 0
    assert facts.records > 0
    assert facts.first_stored <= facts.last_stored


def test_what_is_no_archive_is_told(tmp_path: Path) -> None:
    assert "not an archive" in (archive_facts(str(tmp_path)).problem or "")
