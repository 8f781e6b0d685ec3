"""`mqlake archive` is killed at random moments while the store grows and loses its segments."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

from mqlake.jobs.archive.check import check
from mqlake.jobs.local import LocalEngine
from mqlake.storage.local import LocalDirectory
from mqlake.store.archive.archived import read_manifest
from tests.query.store.rows import batch_rows
from tests.query.store.test_archive import ArchivedStore

KILLS = [pytest.param(3, id="short"), pytest.param(100, id="long", marks=pytest.mark.nightly)]


@pytest.mark.parametrize("kills", KILLS)
@pytest.mark.timeout(3000)
def test_no_message_is_lost_or_doubled(kills: int, tmp_path: Path) -> None:
    chance = random.Random(kills)
    growing = ArchivedStore(tmp_path)
    growing.grow(80)
    growing.archive()
    command = [sys.executable, "-m", "mqlake", "archive", str(growing.path), "--json", "--to"]
    for _ in range(kills):
        growing.grow(40)
        run = subprocess.Popen(
            [*command, str(growing.archive_path)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            run.wait(chance.uniform(0.2, 3))
        except subprocess.TimeoutExpired:
            run.kill()
            run.wait()
        assert check(LocalDirectory(growing.archive_path), LocalEngine(1)).damage == []
        manifest = read_manifest(LocalDirectory(growing.archive_path))
        assert manifest is not None
        for segment in sorted((growing.path / "commitlog").iterdir()):
            if int(segment.name) < manifest.end:
                growing.remove(segment)
    growing.archive()
    rows = batch_rows(growing.path, archive=growing.archive_path, columns="keys,physicalOffset")
    assert [row["keys"][0] for row in rows] == growing.keys
