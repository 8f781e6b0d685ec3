"""The disk of a store, and the limits of the system."""

from __future__ import annotations

import os
import resource
import tempfile
import time
from pathlib import Path

from mqlake.doctor.finding import CheckResult, Severity
from mqlake.errors import DiskError
from mqlake.storage.local_owned import LocalOwnedDirectory
from mqlake.store.retention.plan import ratios, used_percent
from mqlake.store.settings import StoreSettings

FEWEST_FILES = 65_536
"""Open files of one process: each connection is one, and each file of a store in use."""
SLOW_SYNC = 0.02
"""Seconds of a sync of 4 KiB from which on `SYNC_FLUSH` is slow."""
_SYNCS = 5


def disk(directory: Path) -> CheckResult:
    """Report how full the disk of a directory is, and how long a sync takes there."""
    name, place = f"disk of {directory}", _existing(directory)
    try:
        usage = LocalOwnedDirectory(place).usage()
        seconds = _sync_seconds(place)
    except (OSError, DiskError) as error:
        mend = "choose a directory that this user can write"
        reason = getattr(error, "strerror", None) or str(error)
        return CheckResult(name, Severity.PROBLEM, f"it cannot be written: {reason}", mend)
    used, bounds = used_percent(usage), ratios(StoreSettings())
    found = f"{used} % used, {usage.free / 2**30:.1f} GiB free, a sync takes "
    found += f"{seconds * 1000:.1f} ms"
    if used > bounds.warning:
        mend = f"make room: above {bounds.warning} %, a broker accepts no messages"
        return CheckResult(name, Severity.PROBLEM, found, mend)
    if used > bounds.most_used:
        mend = f"make room: above {bounds.most_used} %, a broker removes expired files at any hour"
        return CheckResult(name, Severity.NOTE, found, mend)
    if seconds > SLOW_SYNC:
        return CheckResult(name, Severity.NOTE, found, "with SYNC_FLUSH, each send waits that long")
    return CheckResult(name, Severity.OK, found)


def open_files() -> CheckResult:
    """Report how many files a process may open: the hard limit, which a broker raises itself to."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most == resource.RLIM_INFINITY:
        return CheckResult("open files", Severity.OK, "no limit")
    found = f"a process may open {most:,}"
    if most < FEWEST_FILES:
        mend = f"ulimit -Hn {FEWEST_FILES}, or LimitNOFILE={FEWEST_FILES} in the systemd unit"
        return CheckResult("open files", Severity.NOTE, found, mend)
    return CheckResult("open files", Severity.OK, found)


def _existing(directory: Path) -> Path:
    """Return the directory, or the nearest one above it that exists."""
    absolute = directory.absolute()
    return next(each for each in (absolute, *absolute.parents) if each.is_dir())


def _sync_seconds(directory: Path) -> float:
    """Return the median time of a few syncs, each of a page."""
    taken: list[float] = []
    with tempfile.TemporaryFile(dir=directory) as file:
        for _ in range(_SYNCS):
            file.write(bytes(4096))
            file.flush()
            begin = time.perf_counter()
            os.fsync(file.fileno())
            taken.append(time.perf_counter() - begin)
    return sorted(taken)[_SYNCS // 2]
