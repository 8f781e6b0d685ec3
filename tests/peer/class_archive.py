"""Start JVMs of the programs that `java_build` builds with their classes already parsed.

The first JVM of a program that ends in good order writes an archive of its classes to `build/`;
all later ones map it, which saves more than half of the processor time of their start.
"""

from __future__ import annotations

import shutil
import time
from contextlib import suppress
from pathlib import Path

from tests.peer.java_build import PROGRAM, build

CLAIM = 300
"""Seconds for which a JVM is the only one that may write the archive: it may be killed instead."""


def class_path(source: Path, version: str | None = None, also: str = "") -> list[str]:
    """Return the options of a JVM with the class path of a program.

    Args:
        source, version: as for `build`.
        also: jars at the end of the class path, separated by `:`.

    Raises:
        JavaMissingError, CalledProcessError: as `build`.
    """
    classes, _, jars = build(source, version).split(":")
    output = Path(classes).parent
    program = output / PROGRAM
    # The archive fits one order of the jars only; the JVM would list a directory in any.
    paths = [program, *sorted(Path(jars).parent.glob("*.jar"))]
    path = ":".join(map(str, paths)) + (f":{also}" if also else "")
    return [*_archive(output, program), "-cp", path]


def _archive(output: Path, program: Path) -> list[str]:
    java = Path(shutil.which("java") or "java").resolve()
    archive = output / f"classes-{program.stat().st_mtime_ns}-{java.stat().st_mtime_ns}.jsa"
    if archive.exists():
        return [f"-XX:SharedArchiveFile={archive}"]
    return [f"-XX:ArchiveClassesAtExit={archive}"] if _is_claimed(output / "archiving") else []


def _is_claimed(mark: Path) -> bool:
    """Return whether the next JVM may write the archive; nobody else may, for a while."""
    with suppress(FileNotFoundError):
        if time.time() - mark.stat().st_mtime > CLAIM:
            mark.unlink()
    try:
        mark.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True
