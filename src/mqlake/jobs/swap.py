"""Put a rebuilt set of files in the place of the old ones, so that no moment lacks both.

Everything happens inside of the target directory, below `.mqlake-rebuild/`:

    new/   what the job builds: consumequeue, index, checkpoint
    old/   the files that were in their place, until all new ones are
    ready  an empty file, made when new/ is complete and on the disk

Without `ready`, new/ is the remains of a job that was killed: it is removed. With `ready`, an
exchange was interrupted: `begin` finishes it, as it would have gone on. Each step is one rename.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from mqlake.errors import JobError
from mqlake.storage.local_write import fsync_directory, fsync_file, rename_durably

SCRATCH = ".mqlake-rebuild"
PARTS = ("consumequeue", "index", "checkpoint")
"""In this order they are exchanged: a checkpoint never speaks of files that are not there yet."""

_READY = "ready"


class Exchange:
    """The scratch directory of one rebuild into `target`."""

    def __init__(self, target: Path) -> None:
        self.target = target
        self._scratch = target / SCRATCH

    @property
    def new(self) -> Path:
        """Where the job builds the parts."""
        return self._scratch / "new"

    @property
    def work(self) -> Path:
        """Where the job keeps what it does not hand over."""
        return self._scratch / "work"

    def begin(self) -> None:
        """Finish what an interrupted rebuild left, and make empty `new` and `work` directories."""
        if (self._scratch / _READY).exists():
            self._exchange()
        self.discard()
        self.new.mkdir(parents=True)
        self.work.mkdir()

    def commit(self) -> None:
        """Exchange old parts for new ones. The files below `new` are on the disk already."""
        for part in PARTS:
            if not (self.new / part).exists():
                raise JobError(f"{self.new / part}: the rebuild has not made this part")
        fsync_directory(self.new)
        ready = self._scratch / _READY
        ready.touch()
        fsync_file(ready)
        fsync_directory(self._scratch)
        fsync_directory(self.target)
        self._exchange()
        self.discard()

    def discard(self) -> None:
        """Remove the scratch directory with all that is in it."""
        # `ready` goes first: what is left behind it, were this interrupted, is only rubbish.
        (self._scratch / _READY).unlink(missing_ok=True)
        shutil.rmtree(self._scratch, ignore_errors=True)
        if self._scratch.exists():
            raise JobError(f"{self._scratch}: cannot be removed; remove it by hand")

    def _exchange(self) -> None:
        old = self._scratch / "old"
        old.mkdir(exist_ok=True)
        for part in PARTS:
            new, target, aside = self.new / part, self.target / part, old / part
            if not os.path.lexists(new):
                continue
            if os.path.lexists(target):
                if os.path.lexists(aside):
                    # Both are old: someone has made the part anew since the interruption.
                    continue
                rename_durably(target, aside)
            rename_durably(new, target)


def require_empty(directory: Path, besides: str = SCRATCH) -> None:
    """Make `directory` if it is absent; it may hold what a killed job of the kind left.

    Raises:
        JobError: it holds something else, or is no directory.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        names = sorted(path.name for path in directory.iterdir())
    except OSError as error:
        raise JobError(f"{directory}: {error.strerror}") from error
    others = [name for name in names if name != besides]
    if others and not (directory / besides / _READY).exists():
        raise JobError(f"{directory}: not empty (it has {others[0]!r}); give a new directory")
