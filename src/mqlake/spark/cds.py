"""Class-data sharing: an archive of Spark's parsed classes that halves the start of its JVM.

`python -m mqlake.spark.cds` creates it, once for each Java build and PySpark version; `make env`
calls that. An archive fits one JVM build and one class path. Its name is a hash over both, and the
JVM checks it again when it starts, and ignores an archive that does not fit.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from mqlake.errors import MqlakeError
from mqlake.spark.java import Java, find_java

KEPT = 4
"""Maximum number of archives in the directory (100 MB each): one for each of a few environments.

Those that were used last are kept; the time of a file's change is that of its last use.
"""

LONGEST = 300
"""Seconds within which an archive must be created."""


def archive(java: Java, spark_home: Path) -> Path | None:
    """Return the path of the archive for this JVM and this Spark; None if no directory is safe."""
    directory = _directory()
    return directory / f"{_fingerprint(java, spark_home)}.jsa" if directory else None


def usable(path: Path | None) -> bool:
    """Return whether the archive exists, and nobody else could have written it."""
    if path is None:
        return False
    try:
        status = path.stat()
    except OSError:
        return False
    return status.st_size > 0 and status.st_uid in (os.geteuid(), 0) and not status.st_mode & 0o022


def note_use(path: Path) -> None:
    """Note that an archive is used now."""
    with suppress(OSError):  # It may be another user's.
        os.utime(path)


def make() -> Path:
    """Create the archive for this environment if it is missing; return its path.

    Raises MqlakeError if there is no Java, no writable directory, or the JVM fails.
    """
    from mqlake.spark.launch import spark_home

    path = archive(find_java(), spark_home())
    if path is None:
        raise MqlakeError("the class archive needs a writable directory: set XDG_CACHE_HOME")
    if usable(path):
        note_use(path)
        return path
    with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
        dump = Path(scratch) / path.name
        _dump(dump)
        if not usable(dump):
            raise MqlakeError("the JVM wrote no class archive; Spark will start without one")
        dump.rename(path)
    _keep_newest(path.parent.glob("*.jsa"))
    return path


def _dump(path: Path) -> None:
    """Run a typical session in another process, whose JVM writes the archive when it exits."""
    program = [sys.executable, "-m", "mqlake.spark.cds_session", str(path)]
    try:
        done = subprocess.run(  # noqa: S603
            program, capture_output=True, text=True, timeout=LONGEST, check=False
        )
    except subprocess.TimeoutExpired:
        raise MqlakeError(f"creating the class archive took more than {LONGEST} s") from None
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise MqlakeError(f"creating the class archive failed: {last}")


def _fingerprint(java: Java, spark_home: Path) -> str:
    digest = hashlib.sha256(f"{java.home.resolve()}\0{spark_home.resolve()}\0".encode())
    for path in (java.home / "release", java.home / "lib" / "modules", spark_home / "jars"):
        try:
            status = path.stat()
        except OSError:
            continue
        digest.update(f"{path.name} {status.st_size} {status.st_mtime_ns}\0".encode())
    return f"spark-{digest.hexdigest()[:16]}"


def _directory() -> Path | None:
    for base in _cache_directories():
        directory = base / "mqlake" / "class-archives"
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError:
            continue
        if directory.stat().st_uid == os.geteuid():
            return directory
    return None


def _cache_directories() -> Iterable[Path]:
    if base := os.environ.get("XDG_CACHE_HOME"):
        yield Path(base)
    try:
        yield Path.home() / ".cache"
    except RuntimeError:  # The user has no home directory.
        return


def _keep_newest(archives: Iterable[Path]) -> None:
    newest_first = sorted(archives, key=lambda path: path.stat().st_mtime, reverse=True)
    for path in newest_first[KEPT:]:
        path.unlink(missing_ok=True)


def main() -> int:
    """Create the archive. Spark also starts without one, so this always succeeds."""
    try:
        path = make()
    except (MqlakeError, OSError) as error:
        sys.stderr.write(f"Spark will start more slowly: {error}\n")
        return 0
    sys.stdout.write(f"class archive for Spark: {path}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
