from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mqlake.errors import DiskError, JobError, StoreError
from mqlake.jobs.local import LocalEngine
from mqlake.jobs.rebuild import rebuild
from mqlake.jobs.swap import PARTS, SCRATCH, Exchange, require_empty
from mqlake.storage.local_owned import LocalOwnedDirectory
from tests.jobs.logs import LogWriter
from tests.jobs.model import Files, queue_files, read_log, read_queue_files


def name_of(descriptor: int) -> str:
    return Path(f"/proc/self/fd/{descriptor}").readlink().name


class Killed(BaseException):
    """Stands for the end of the process: nothing may run after it."""


def tree(directory: Path) -> Files:
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file() and SCRATCH not in path.parts
    }


def make(directory: Path, content: str) -> None:
    for part in PARTS[:2]:
        (directory / part).mkdir(parents=True)
        (directory / part / "file").write_text(content)
    (directory / PARTS[2]).write_text(content)


def kill_at(monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    """Let the process end at the step-th thing that changes a directory."""
    left = [step]

    def counted(function: Callable[..., object]) -> Callable[..., object]:
        def wrapper(*arguments: object, **options: object) -> object:
            if left[0] == 0:
                raise Killed
            left[0] -= 1
            return function(*arguments, **options)

        return wrapper

    for name in ("replace", "create", "remove", "make_directory", "remove_directory"):
        method = getattr(LocalOwnedDirectory, name)
        monkeypatch.setattr(LocalOwnedDirectory, name, counted(method))


@pytest.mark.parametrize("has_old", [True, False])
@pytest.mark.parametrize("step", range(14))
def test_an_exchange_that_ends_anywhere_is_finished_or_undone(
    step: int, has_old: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "store"
    store.mkdir()
    (store / "lock").touch()
    if has_old:
        make(store, "old")
    before = tree(store)
    exchange = Exchange(LocalOwnedDirectory(store))
    exchange.begin()
    make(store / Exchange.new, "new")
    after = {"lock": b""} | {
        f"{part}/file" if part != "checkpoint" else part: b"new" for part in PARTS
    }

    with monkeypatch.context() as patch:
        kill_at(patch, step)
        try:
            exchange.commit()
        except Killed:
            is_ready = (store / SCRATCH / "ready").exists()
        else:
            is_ready = True
    Exchange(LocalOwnedDirectory(store)).begin()

    # Behind the exchange there is only rubbish to remove, and `ready` is gone.
    assert tree(store) == after if is_ready else tree(store) in (before, after)
    Exchange(LocalOwnedDirectory(store)).give_up()
    assert not (store / SCRATCH).exists()


def test_old_files_stay_until_all_new_ones_are_there(tmp_path: Path) -> None:
    make(tmp_path, "old")
    exchange = Exchange(LocalOwnedDirectory(tmp_path))
    exchange.begin()
    (tmp_path / Exchange.new / "consumequeue").mkdir()

    with pytest.raises(JobError, match="has not built this part"):
        exchange.commit()

    assert {b"old"} == set(tree(tmp_path).values())


def test_old_files_are_not_given_up_in_the_middle_of_an_exchange(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path, "old")
    exchange = Exchange(LocalOwnedDirectory(tmp_path))
    exchange.begin()
    make(tmp_path / Exchange.new, "new")
    replace = LocalOwnedDirectory.replace

    def refused(self: LocalOwnedDirectory, source: str, target: str) -> None:
        if target == "index":
            raise DiskError(f"{target}: Input/output error")
        replace(self, source, target)

    with monkeypatch.context() as patch:
        patch.setattr(LocalOwnedDirectory, "replace", refused)
        with pytest.raises(DiskError):
            exchange.commit()
    exchange.give_up()
    assert not (tmp_path / "index").exists()

    Exchange(LocalOwnedDirectory(tmp_path)).begin()

    assert {b"new"} == set(tree(tmp_path).values())


def test_a_part_that_a_broker_made_meanwhile_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path, "old")
    exchange = Exchange(LocalOwnedDirectory(tmp_path))
    exchange.begin()
    make(tmp_path / Exchange.new, "new")
    with monkeypatch.context() as patch:
        # ready, old/, and the first rename: consumequeue is out of its place.
        kill_at(patch, 3)
        with pytest.raises(Killed):
            exchange.commit()
    assert not (tmp_path / "consumequeue").exists()
    (tmp_path / "consumequeue").mkdir()
    (tmp_path / "consumequeue/file").write_text("broker")

    Exchange(LocalOwnedDirectory(tmp_path)).begin()

    assert tree(tmp_path)["consumequeue/file"] == b"broker"


def test_names_are_synced_before_the_old_files_move(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path, "old")
    exchange = Exchange(LocalOwnedDirectory(tmp_path))
    exchange.begin()
    make(tmp_path / Exchange.new, "new")
    events: list[str] = []
    replace = Path.replace

    def recorded(self: Path, target: Path) -> Path:
        events.append(f"rename {self.name}")
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", recorded)
    for sync in ("fsync", "fdatasync"):
        monkeypatch.setattr(os, sync, lambda fd: events.append(f"sync {name_of(fd)}"))

    exchange.commit()

    first_rename = events.index("rename consumequeue")
    names = ["new", SCRATCH, tmp_path.name, "ready", SCRATCH, SCRATCH]
    assert [f"sync {name}" for name in names] == events[:first_rename]
    assert events[first_rename + 1].startswith("sync ")


def test_the_output_of_a_killed_job_is_taken_again(tmp_path: Path) -> None:
    (tmp_path / "out" / SCRATCH / "new").mkdir(parents=True)

    require_empty(tmp_path / "out")


def test_a_file_is_no_output_directory(tmp_path: Path) -> None:
    (tmp_path / "out").touch()

    with pytest.raises(JobError, match="out: "):
        require_empty(tmp_path / "out")


DYING = """
import os, sys
from pathlib import Path
from mqlake.jobs.local import LocalEngine
from mqlake.jobs.rebuild import rebuild

left = int(sys.argv[2])

class DyingEngine(LocalEngine):
    def run(self, task, jobs, title):
        def dying(job):
            global left
            if left == 0:
                os._exit(9)
            left -= 1
            return task(job)
        return super().run(dying, jobs, title)

rebuild(Path(sys.argv[1]), DyingEngine(1), tasks=2, max_index=100, hash_slots=10)
"""


@pytest.mark.parametrize("after", range(5))
def test_a_killed_rebuild_leaves_the_store_as_it_was(after: int, tmp_path: Path) -> None:
    log = LogWriter(tmp_path / "store")
    for _ in range(50):
        log.add()
    store = log.close()
    make(store, "old")
    (store / "lock").touch()
    before = tree(store)

    environment = {**os.environ, "MQLAKE_KERNEL": "reference"}
    arguments = [sys.executable, "-c", DYING, str(store), str(after)]
    code = subprocess.run(arguments, env=environment, check=False).returncode

    # Two tasks of stage one, two index files of 99 entries.
    assert code == (9 if after < 4 else 0)
    assert (before == tree(store)) is (after < 4)
    assert (store / SCRATCH).exists() is (after < 4)

    rebuild(store, LocalEngine(2), queue_file_size=2000)

    assert not (store / SCRATCH).exists()
    assert queue_files(list(read_log(store)), 2000) == read_queue_files(store)


BROKER = """
import sys
from pathlib import Path
from mqlake.storage.owner_lock import OwnerLock
with OwnerLock(Path(sys.argv[1])):
    print("owns", flush=True)
    sys.stdin.read()
"""


def test_a_running_broker_keeps_its_store(tmp_path: Path) -> None:
    log = LogWriter(tmp_path / "store")
    log.add()
    store = log.close()
    arguments = [sys.executable, "-c", BROKER, str(store)]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as broker:
        assert broker.stdout is not None
        assert broker.stdout.readline() == b"owns\n"

        with pytest.raises(StoreError, match="owns this store"):
            rebuild(store, LocalEngine(1))
        assert not (store / SCRATCH).exists()
        rebuild(store, LocalEngine(1), out=tmp_path / "out")
        broker.communicate()
