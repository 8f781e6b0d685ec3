"""Commands that start JVMs: all starts of a program that tests often start share an archive of its
classes.

A broker's JVM parses and verifies thousands of classes, a third of the processor time of its start.
One of the first JVMs that run a program writes an archive of them before it ends, beside the
program's jars in `build/`, and later ones use it. A JVM checks whether an archive fits, and does
without one that does not. To write one costs as much as two or three starts save. The classes of
other programs are not verified, which saves a sixth.
"""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TextIO

from mqlake.spark.launch import QUICK_START

ON_STDERR = ("-Xlog:disable", "-Xlog:all=error:stderr")
"""Tests read what programs print to stdout, where a JVM would complain about an archive."""

OFTEN = ("rocketmq-5.5.1", "rocketmq_broker", "rocketmq_client-5.5.0", "rocketmq_cluster")
"""What the programs are built to that a run starts more than three times, one after the other."""

UNVERIFIED = ("-XX:+UnlockDiagnosticVMOptions", "-XX:-BytecodeVerificationRemote")
"""Verification finds what a compiler does not make."""

_WRITES = "-Dclasses.archive="
_LONGEST = 60
"""Seconds within which an archive must be written."""

_locks: dict[Path, TextIO] = {}


def java(path: str, options: Sequence[object], program: str, *words: object) -> list[str]:
    """Return the command that starts a program.

    Args:
        path: the class path that `java_build.build` returned, and perhaps more jars.
        options: of the JVM.
        program: the name of the main class.
        words: what the program is given.
    """
    given = [str(option) for option in options]
    # Programs that are measured start as users start them.
    if not set(QUICK_START) <= set(given):
        shared: Sequence[str] = ()
    elif _directory(path).name in OFTEN:
        shared = archived(path, program)
    else:
        shared = UNVERIFIED
    return ["java", *shared, *given, "-cp", path, program, *map(str, words)]


def archived(path: str, program: str) -> Sequence[str]:
    """Return the options by which a JVM uses the archive of a program, or can write it."""
    archive = _directory(path) / f"{program}-{_digest(path)}.jsa"
    if archive.exists():
        return (*ON_STDERR, f"-XX:SharedArchiveFile={archive}")
    if _is_ours(archive):
        return (*ON_STDERR, "-XX:+RecordDynamicDumpInfo", f"{_WRITES}{archive}")
    return ()


def keep_classes(command: Sequence[str], process_id: int) -> None:
    """Have a JVM write the archive of its program, if that is missing; call this before its end.

    Args:
        command: by which it was started.
    """
    path = next((word.removeprefix(_WRITES) for word in command if word.startswith(_WRITES)), None)
    if path is None or Path(path).exists():
        return
    unfinished = Path(path).with_suffix(".unfinished")
    jcmd = _home() / "bin" / "jcmd"
    subprocess.run(
        [jcmd, str(process_id), "VM.cds", "dynamic_dump", str(unfinished)],
        capture_output=True,
        timeout=_LONGEST,
        check=False,
    )
    if unfinished.exists():
        unfinished.rename(path)


def _directory(path: str) -> Path:
    """Return what the program with a class path is built to."""
    return Path(path.partition(":")[0]).parent


def _is_ours(archive: Path) -> bool:
    """Return whether this process is to write an archive: no two write the same one."""
    if archive not in _locks:
        lock = archive.with_suffix(".lock").open("w")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            return False
        _locks[archive] = lock
    return True


def _digest(path: str) -> str:
    digest = hashlib.sha256(path.encode())
    files = [_home() / "lib" / "modules"]
    for each in path.split(":"):
        place = Path(each)
        files += sorted(place.parent.glob("*.jar")) if place.name == "*" else [place]
    for file in files:
        status = file.stat()
        digest.update(f"\0{file} {status.st_size} {status.st_mtime_ns}".encode())
    return digest.hexdigest()[:16]


@cache
def _home() -> Path:
    """Return the directory of the JVM."""
    return Path(shutil.which("java") or "java").resolve().parents[1]
