"""Put a rebuilt set of files in the place of the old ones, so that no moment lacks both.

Everything happens inside of the target directory, below `.mqlake-rebuild/`:

    new/   what the job builds: consumequeue, batchconsumequeue in some stores, index, checkpoint
    old/   the files that were in their place, until all new ones are
    ready  an empty file, made when new/ is complete and on the disk

Without `ready`, new/ is the remains of a job that was killed: it is removed. With `ready`, an
exchange was interrupted: `begin` finishes it, as it would have gone on. A directory is exchanged by
two renames; a file is replaced.
"""

from __future__ import annotations

from pathlib import Path

from mqlake.errors import DiskError, JobError
from mqlake.storage.durable import create_file, parent, remove_tree, replace_file
from mqlake.storage.local_owned import LocalOwnedDirectory
from mqlake.storage.protocol import OwnedDirectory
from mqlake.storage.read_file import read_file

SCRATCH = ".mqlake-rebuild"
PARTS = ("consumequeue", "index", "checkpoint")
"""In this order they are exchanged: a checkpoint never speaks of files that are not there yet."""

_OPTIONAL = ("batchconsumequeue",)
"""Exchanged before all others, if it was made."""

_READY = "ready"


class Exchange:
    """The scratch directory of one rebuild into a directory.

    Attributes:
        new: where the job builds the parts; a path in the directory, as are the others.
        work: where the job keeps what it does not hand over.
    """

    new = f"{SCRATCH}/new"
    work = f"{SCRATCH}/work"
    _ready = f"{SCRATCH}/{_READY}"
    _old = f"{SCRATCH}/old"

    def __init__(self, directory: OwnedDirectory) -> None:
        self._directory = directory

    def begin(self) -> None:
        """Finish what an interrupted rebuild left, and make empty `new` and `work` directories.

        Raises:
            DiskError: the system refused it; the next rebuild tries again.
        """
        if self._directory.exists(self._ready):
            self._exchange()
        self._discard()
        for path in (SCRATCH, self.new, self.work):
            self._directory.make_directory(path)

    def commit(self) -> None:
        """Exchange old parts for new ones. The files below `new` are on the disk already.

        Raises:
            JobError: a part is missing; the old ones are in their place.
            DiskError: the system refused it. If some parts were exchanged already, the next rebuild
                exchanges the others.
        """
        for part in PARTS:
            path = f"{self.new}/{part}"
            if not self._directory.exists(path):
                where = self._directory.describe(path)
                raise JobError(f"{where}: the rebuild has not made this part")
        for path in (self.new, SCRATCH, ""):
            self._directory.sync_directory(path)
        create_file(self._directory, self._ready, 0).close()
        self._exchange()
        self._discard()

    def give_up(self) -> None:
        """Remove what was built, unless parts of it may be in their place already."""
        if not self._directory.exists(self._ready):
            self._discard()

    def _discard(self) -> None:
        # `ready` goes first, and for certain: what is left behind it is only rubbish.
        if self._directory.exists(self._ready):
            self._directory.remove(self._ready)
            self._directory.sync_directory(SCRATCH)
        remove_tree(self._directory, SCRATCH)

    def _exchange(self) -> None:
        directory = self._directory
        directory.make_directory(self._old)
        directory.sync_directory(SCRATCH)
        for part in _OPTIONAL + PARTS:
            new, aside = f"{self.new}/{part}", f"{self._old}/{part}"
            if not directory.exists(new):
                continue
            if not directory.is_directory(new):
                # Replaced in its own directory: there is no moment without the file.
                replace_file(directory, part, read_file(directory, new) or b"")
                directory.remove(new)
                continue
            if directory.exists(part):
                if directory.exists(aside):
                    # Both are old: someone has made the part anew since the interruption.
                    continue
                self._move(part, aside)
            self._move(new, part)

    def _move(self, source: str, target: str) -> None:
        self._directory.replace(source, target)
        self._directory.sync_directory(parent(target))
        self._directory.sync_directory(parent(source))


def require_empty(directory: Path, besides: str = SCRATCH) -> None:
    """Make `directory` if it is absent; it may hold what a killed job of the kind left.

    Raises:
        JobError: it holds something else, or is no directory.
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
        raise JobError(f"{directory}: not empty (it has {others[0]!r}); give a new directory")
