"""Find the Java runtime for Spark. `python -m mqlake.spark.java` prints it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from mqlake.errors import JobError

OLDEST = 17
"""The releases that Spark 4 supports (its documentation, "Overview": Java 17, 21)."""

COMMON_DIRECTORIES = (
    "/usr/lib/jvm",
    "/usr/java",
    "/usr/local/java",
    "/opt/java",
    "/opt/jdk",
    "/opt/homebrew/opt",
    "/usr/local/opt",
    "/Library/Java/JavaVirtualMachines",
)
INSIDE = ("", "Contents/Home", "libexec/openjdk.jdk/Contents/Home")


class Java(NamedTuple):
    """A Java runtime."""

    home: Path
    version: int
    """The feature release, such as 17 or 21."""


def find_java(oldest: int = OLDEST) -> Java:
    """Return the runtime of JAVA_HOME, otherwise of PATH, otherwise of the usual directories.

    A runtime that is too old is ignored. Of the usual directories, the lowest version that is new
    enough is used, because Spark is tested with it. Raises JobError without such a runtime.
    """
    passed_over: list[Java] = []
    for candidates in (_named(), _on_path(), _installed()):
        found = sorted(filter(None, map(_examine, candidates)), key=lambda java: java.version)
        for java in found:
            if java.version >= oldest:
                return java
        passed_over += found
    seen = "".join(f"; Java {java.version} in {java.home} is too old" for java in passed_over[:1])
    raise JobError(
        f"Spark needs Java {oldest} or newer{seen}: install a package such as "
        "default-jre-headless, or set JAVA_HOME"
    )


def _named() -> Iterator[Path]:
    if home := os.environ.get("JAVA_HOME"):
        yield Path(home)


def _on_path() -> Iterator[Path]:
    if java := shutil.which("java"):
        yield Path(java).resolve().parents[1]


def _installed() -> Iterator[Path]:
    for directory in map(Path, COMMON_DIRECTORIES):
        try:
            homes = sorted(directory.iterdir())
        except OSError:
            continue
        for home in homes:
            yield from (home / inside for inside in INSIDE)


def _examine(home: Path) -> Java | None:
    program = home / "bin" / "java"
    if not os.access(program, os.X_OK):
        return None
    version = _released(home) or _asked(program)
    return Java(home, version) if version else None


def _released(home: Path) -> int | None:
    """Read the version from the `release` file of a JDK or JRE; no process is started."""
    try:
        text = (home / "release").read_text(errors="replace")
    except OSError:
        return None
    return _feature_release(re.search(r'^JAVA_VERSION="?([0-9.]+)', text, re.MULTILINE))


def _asked(program: Path) -> int | None:
    """Ask the program itself; macOS has a `java` that only reports that Java is not installed."""
    try:
        answer = subprocess.run(  # noqa: S603
            [program, "-version"], capture_output=True, text=True, timeout=20, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return _feature_release(re.search(r'version "([0-9.]+)', answer.stderr))


def _feature_release(match: re.Match[str] | None) -> int | None:
    """Return 17 for 17.0.2, 8 for 1.8.0."""
    if match is None:
        return None
    numbers = [int(part) for part in match[1].split(".") if part]
    return numbers[1] if numbers[0] == 1 and len(numbers) > 1 else numbers[0]


def main() -> int:
    """Print the runtime that would be used; exit with code 2 and the reason if none is found."""
    try:
        java = find_java()
    except JobError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write(f"Java {java.version} in {java.home}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
