"""Replace files with rebuilt ones, so that at no moment both are missing.

Everything happens inside the target directory, below `.mqlake-rebuild/`:

    new/   what the job builds: consumequeue, batchconsumequeue in some stores, index, checkpoint
    old/   the files that were in their place, until all new ones are
    ready  an empty file, made when new/ is complete and on the disk

Without `ready`, new/ is left from a job that was killed: it is removed. With `ready`, an exchange
was interrupted: `begin` completes it. A directory is exchanged by two renames; a file is replaced.

A part that is a symbolic link to a directory stays one, although the directory may be on another
disk. So new/ and work/ have links to a scratch directory inside that directory, and its entries are
exchanged one by one: all old ones are moved away, then `emptied-PART` is made, then the new ones
are moved into their place.
"""

from __future__ import annotations

import logging
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from mqlake.errors import DiskError, JobError, StoreError
from mqlake.storage.durable import create_file, parent, remove_tree, replace_file
from mqlake.storage.local_owned import LocalOwnedDirectory
from mqlake.storage.owner_lock import directory_lock
from mqlake.storage.protocol import OwnedDirectory
from mqlake.storage.read_file import read_file

_log = logging.getLogger(__name__)

SCRATCH = ".mqlake-rebuild"
PARTS = ("consumequeue", "index", "checkpoint")
"""They are exchanged in this order: a checkpoint never refers to files that do not exist yet."""

OPTIONAL_PARTS = ("batchconsumequeue",)
"""Exchanged before all others, if it was built."""

_READY = "ready"


class Exchange:
    """The scratch directory of one rebuild into a directory.

    Attributes:
        new: the directory in which the job builds the parts; a path in the target directory, like
            the others.
        work: the directory for files that the job does not publish.
    """

    new = f"{SCRATCH}/new"
    work = f"{SCRATCH}/work"
    _ready = f"{SCRATCH}/{_READY}"
    _old = f"{SCRATCH}/old"

    def __init__(self, directory: OwnedDirectory, linked: Sequence[str] = ()) -> None:
        self._directory, self._linked = directory, linked

    def begin(self) -> None:
        """Complete what an interrupted rebuild left, and create empty `new` and `work` directories.

        Raises:
            DiskError: the system refused an operation; the next rebuild tries again.
        """
        if self._directory.exists(self._ready):
            self._exchange()
        self._discard()
        inside = (f"{part}/{SCRATCH}" for part in self._linked)
        linked = (path for each in inside for path in (each, f"{each}/new", f"{each}/work"))
        for path in (SCRATCH, self.new, self.work, *linked):
            self._directory.make_directory(path)

    def commit(self) -> None:
        """Exchange old parts for new ones. The files below `new` are already durable.

        Raises:
            JobError: a part is missing; the old ones are unchanged.
            DiskError: the system refused an operation. If some parts were exchanged already, the
                next rebuild exchanges the others.
        """
        for part in PARTS:
            path = f"{self.new}/{part}"
            if not self._directory.exists(path):
                where = self._directory.describe(path)
                raise JobError(f"{where}: the rebuild has not built this part")
        linked = (path for part in self._linked for path in (f"{part}/{SCRATCH}", part))
        for path in (*linked, self.new, SCRATCH, ""):
            self._directory.sync_directory(path)
        create_file(self._directory, self._ready, 0).close()
        self._exchange()
        try:
            self._discard()
        except DiskError as error:
            _log.warning("%s; the next rebuild removes what is left", error)

    def give_up(self) -> None:
        """Remove what was built, unless parts of it may already have been exchanged."""
        if not self._directory.exists(self._ready):
            self._discard()

    def _discard(self) -> None:
        # `ready` is removed first, durably: whatever is left after that is only garbage.
        if self._directory.exists(self._ready):
            self._directory.remove(self._ready)
            self._directory.sync_directory(SCRATCH)
        for part in self._linked:
            remove_tree(self._directory, f"{part}/{SCRATCH}")
        remove_tree(self._directory, SCRATCH)

    def _exchange(self) -> None:
        directory = self._directory
        directory.make_directory(self._old)
        directory.sync_directory(SCRATCH)
        for part in OPTIONAL_PARTS + PARTS:
            new, aside = f"{self.new}/{part}", f"{self._old}/{part}"
            if not directory.exists(new):
                continue
            if part in self._linked:
                self._exchange_entries(part)
                continue
            if not directory.is_directory(new):
                # The file is replaced in its own directory, so it exists at every moment.
                replace_file(directory, part, read_file(directory, new) or b"")
                directory.remove(new)
                continue
            if directory.exists(part):
                if directory.exists(aside):
                    # Both are old: another process has built the part again since the interruption.
                    continue
                self._move(part, aside)
            self._move(new, part)

    def _exchange_entries(self, part: str) -> None:
        directory, emptied = self._directory, f"{SCRATCH}/emptied-{part}"
        new, old = f"{part}/{SCRATCH}/new", f"{part}/{SCRATCH}/old"
        if not directory.exists(emptied):
            directory.make_directory(old)
            for name in directory.names(part):
                if name != SCRATCH:
                    remove_tree(directory, f"{old}/{name}")
                    directory.replace(f"{part}/{name}", f"{old}/{name}")
            directory.sync_directory(part)
            create_file(directory, emptied, 0).close()
        for name in directory.names(new):
            directory.replace(f"{new}/{name}", f"{part}/{name}")
        directory.sync_directory(part)

    def _move(self, source: str, target: str) -> None:
        self._directory.replace(source, target)
        self._directory.sync_directory(parent(target))
        self._directory.sync_directory(parent(source))


def require_empty(directory: Path, besides: str = SCRATCH) -> None:
    """Create `directory` if it is missing; it may contain what a killed job of this kind left.

    Raises:
        JobError: it contains something else, or is not a directory.
    """
    try:
        LocalOwnedDirectory.make(directory)
        names = sorted(path.name for path in directory.iterdir())
    except DiskError as error:
        raise JobError(str(error)) from error
    except OSError as error:
        raise JobError(f"{directory}: {error.strerror}") from error
    others = [name for name in names if name != besides]
    if others and not (directory / besides / _READY).exists():
        raise JobError(
            f"{directory}: not empty (it contains {others[0]!r}); choose a new directory"
        )


@contextmanager
def written_alone(directory: Path, besides: str = SCRATCH) -> Generator[None]:
    """Write to `directory` as the only job; it exists, and `require_empty` accepts it.

    No file is created, so a job that is killed leaves no mark: the system ends its lock. On file
    systems without such locks, other jobs are not noticed.

    Raises:
        JobError: another job writes to it, or has just done so.
    """
    with ExitStack() as held:
        try:
            held.enter_context(directory_lock(directory))
        except StoreError:
            raise JobError(
                f"{directory}: another job writes to this directory; wait until it has ended, "
                "or choose a new directory"
            ) from None
        require_empty(directory, besides)
        yield
