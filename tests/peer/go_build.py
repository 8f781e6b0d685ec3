"""Build the Go program beside the tests: modules from a Go proxy, once, into `build/`."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from pathlib import Path

BUILD = Path(__file__).parents[2] / "build"
_QUICKLY = "-gcflags=all=-N -l -dwarf=false"
UNREACHABLE = ("dial tcp", "no such host", "i/o timeout", "connection refused", "Forbidden")


class GoMissingError(Exception):
    """No Go program can be built here; the message is one line that says why."""


def build(source: Path, package: str = ".", *, quickly: bool = False) -> Path:
    """Compile the module in `source`; return the program. Go itself knows what has changed.

    Args:
        package: of the program; one that the module requires, if it has none of its own.
        quickly: for a program that is not measured: without optimizations and C, Go compiles all
            that it needs, the standard library too, in two thirds of the processor time.

    Raises:
        GoMissingError: no Go toolchain, or no proxy to fetch modules from.
        CalledProcessError: the compiler refused the program.
    """
    if shutil.which("go") is None:
        raise GoMissingError("go is not installed (apt-get install golang-go)")
    output = BUILD / source.name
    output.mkdir(parents=True, exist_ok=True)
    program = output / "peer"
    with (output / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        command = ["go", "build", "-mod=readonly", "-buildvcs=false", "-o", str(program), package]
        environment = dict(os.environ)
        if quickly:
            command.insert(2, _QUICKLY)
            environment["CGO_ENABLED"] = "0"
        done = subprocess.run(
            command, cwd=source, env=environment, capture_output=True, text=True, check=False
        )
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        if any(words in done.stderr for words in UNREACHABLE):
            raise GoMissingError(f"go could not fetch what {source.name}/ needs: {reason}")
        raise subprocess.CalledProcessError(done.returncode, command, done.stdout, done.stderr)
    return program
