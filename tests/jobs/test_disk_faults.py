"""Each operation of a job that fails once: an error in one line, and a rerun succeeds."""

from __future__ import annotations

import errno
import io
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mqlake.errors import MqlakeError
from mqlake.formats import archive_manifest
from mqlake.jobs.archive.job import archive
from mqlake.jobs.convert import convert_to_kafka
from mqlake.jobs.export import export
from mqlake.jobs.local import LocalEngine
from mqlake.jobs.rebuild import rebuild
from mqlake.jobs.verify import verify
from mqlake.storage.object_target import LocalTarget
from tests.jobs.logs import LogWriter

CALLS = (
    (io, "open"),
    *((os, name) for name in ("open", "pwrite", "pread", "fsync", "fdatasync", "ftruncate")),
    *((os, name) for name in ("mkdir", "rename", "replace", "unlink", "rmdir", "link")),
)
NAMES = [name if module is os else f"{module.__name__}.{name}" for module, name in CALLS]
_MOST = 6
"""Failures of each call in each job."""

Job = Callable[[Path, Path], Any]

JOBS: dict[str, Job] = {
    "rebuild": lambda store, out: rebuild(store, LocalEngine(1), tasks=2),
    "rebuild elsewhere": lambda store, out: rebuild(store, LocalEngine(1), out=out, tasks=2),
    "verify": lambda store, out: verify(store, LocalEngine(1), tasks=2),
    "export": lambda store, out: export(store, LocalEngine(1), out=out, tasks=2),
    "convert": lambda store, out: convert_to_kafka(store, LocalEngine(1), out=out),
    "archive": lambda store, out: archive(store, LocalTarget(out)),
}

HAVE_TIMES = ("export", "convert")
"""Jobs whose output contains its time or random ids."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    log = LogWriter(tmp_path_factory.mktemp("whole") / "store", segment=4096)
    for number in range(60):
        log.add("AB"[number % 2], number % 2)
    store = log.close()
    rebuild(store, LocalEngine(1), queue_file_size=400, hash_slots=20, max_index=80)
    return store


class Fault:
    """Counts the calls of a function, and lets one of them fail."""

    def __init__(self, patch: pytest.MonkeyPatch, module: Any, name: str, failing: int) -> None:
        self.calls, self._failing, self._real = 0, failing, getattr(module, name)
        patch.setattr(module, name, self._call)

    def _call(self, *args: Any, **kwargs: Any) -> Any:
        self.calls += 1
        if self.calls == self._failing:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return self._real(*args, **kwargs)


def content(root: Path) -> dict[str, bytes]:
    if (root / archive_manifest.NAME).exists():
        return archived(root)
    # What could not be removed after a rebuild is removed by the next one.
    left = (".mqlake-rebuild", "lock")
    paths = (path for path in root.rglob("*") if path.is_file() and not {*left} & {*path.parts})
    return {str(path.relative_to(root)): path.read_bytes() for path in paths}


def archived(root: Path) -> dict[str, bytes]:
    """Return the files in an archive, which must have no object that its manifest does not name."""
    manifest = archive_manifest.decode((root / archive_manifest.NAME).read_bytes())
    objects = {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}
    named = {file.object for file in manifest.all_files} | {*manifest.superseded}
    assert objects == named | {archive_manifest.NAME}
    return {file.path: (root / file.object).read_bytes() for file in manifest.all_files}


def copy(whole: Path, to: Path) -> Path:
    shutil.rmtree(to, ignore_errors=True)
    return shutil.copytree(whole, to)


@pytest.mark.parametrize("call", CALLS, ids=NAMES)
@pytest.mark.parametrize("job", JOBS)
def test_a_failure_is_an_error_in_one_line_and_a_rerun_succeeds(
    whole: Path, tmp_path: Path, job: str, call: tuple[Any, str]
) -> None:
    run, out = JOBS[job], tmp_path / "out"
    store = copy(whole, tmp_path / "store")
    with pytest.MonkeyPatch.context() as patch:
        count = Fault(patch, *call, failing=0)
        run(store, out)
        calls = count.calls
    expected = content(store), content(out)
    step = max(1, calls // _MOST)
    for failing in range(1, calls + 1, step):
        store = copy(whole, tmp_path / "store")
        shutil.rmtree(out, ignore_errors=True)
        has_failed = False
        with pytest.MonkeyPatch.context() as patch:
            Fault(patch, *call, failing=failing)
            try:
                run(store, out)
            except MqlakeError as error:
                has_failed = "\n" not in str(error)
        if has_failed:
            run(store, out)
        found = content(store), content(out)
        assert found[0] == expected[0]
        assert found[1].keys() == expected[1].keys()
        if job not in HAVE_TIMES:
            assert found == expected
