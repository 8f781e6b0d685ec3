"""Build the Rust program beside the tests: crates from crates.io, once, into `build/`."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from pathlib import Path

BUILD = Path(__file__).parents[2] / "build"
UNREACHABLE = ("failed to download", "Could not resolve host", "spurious network error")


class RustMissingError(Exception):
    """No Rust program can be built here; the message is one line that says why."""


def build(source: Path, program: str = "rocketmq_peer") -> Path:
    """Compile the package in `source`; return one of its programs. Cargo itself knows what has
    changed.

    Raises:
        RustMissingError: no cargo, or no registry to fetch crates from.
        CalledProcessError: the compiler refused the program.
    """
    if shutil.which("cargo") is None:
        raise RustMissingError("cargo is not installed (apt-get install cargo)")
    output = BUILD / source.name
    output.mkdir(parents=True, exist_ok=True)
    with (output / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        command = ["cargo", "build", "--locked", "--quiet"]
        done = subprocess.run(
            command,
            cwd=source,
            env=os.environ | {"CARGO_TARGET_DIR": str(output)},
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        if any(words in done.stderr for words in UNREACHABLE):
            raise RustMissingError(f"cargo could not fetch what {source.name}/ needs: {reason}")
        raise subprocess.CalledProcessError(done.returncode, command, done.stdout, done.stderr)
    return output / "debug" / program
