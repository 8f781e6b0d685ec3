"""Environments for Python programs that must not share mqlake's, made once, in `build/`."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import sys
from pathlib import Path

BUILD = Path(__file__).parents[2] / "build"
UNREACHABLE = ("Failed to fetch", "error sending request", "dns error", "no usable wheels")


class PythonMissingError(Exception):
    """No environment can be made here; the message is one line that says why."""


def environment(source: Path) -> Path:
    """Install `requirements.txt` of `source` if that has not been done; return the interpreter.

    Raises:
        PythonMissingError: no registry to fetch packages from.
        CalledProcessError: the requirements cannot be installed.
    """
    requirements = source / "requirements.txt"
    output = BUILD / source.name
    place, stamp = output / "environment", output / "built"
    python = place / "bin" / "python"
    output.mkdir(parents=True, exist_ok=True)
    with (output / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        wanted = requirements.read_text()
        if not stamp.exists() or stamp.read_text() != wanted:
            shutil.rmtree(place, ignore_errors=True)
            _uv("venv", "--python", sys.executable, str(place))
            options = ("--no-deps", "--only-binary", ":all:", "--python", str(python))
            _uv("pip", "install", *options, "--requirements", str(requirements))
            stamp.write_text(wanted)
    return python


def _uv(*words: str) -> None:
    command = [sys.executable, "-m", "uv", "--quiet", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        if any(words in done.stderr for words in UNREACHABLE):
            reason = done.stderr.strip().splitlines()[-1].strip()
            raise PythonMissingError(f"uv could not fetch packages: {reason}")
        raise subprocess.CalledProcessError(done.returncode, command, done.stdout, done.stderr)
