"""Install what Node.js programs beside the tests need: packages from a registry, once."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
from pathlib import Path

BUILD = Path(__file__).parents[2] / "build"
UNREACHABLE = ("ENOTFOUND", "ECONNREFUSED", "ETIMEDOUT", "EAI_AGAIN", "E403")


class NodeMissingError(Exception):
    """No Node.js program can run here; the message is one line that says why."""


def build(source: Path) -> Path:
    """Install the locked packages of `source`; return the directory with the program in it.

    Raises:
        NodeMissingError: no Node.js, no npm, or no registry to fetch packages from.
        CalledProcessError: npm refused the packages.
    """
    for tool in ("node", "npm"):
        if shutil.which(tool) is None:
            raise NodeMissingError(f"{tool} is not installed (apt-get install nodejs npm)")
    output = BUILD / source.name
    stamp, locked = output / "built", (source / "package-lock.json").read_text()
    output.mkdir(parents=True, exist_ok=True)
    with (output / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for path in source.iterdir():
            shutil.copy(path, output)
        if not stamp.exists() or stamp.read_text() != locked:
            _install(output)
            stamp.write_text(locked)
    return output


def _install(directory: Path) -> None:
    command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    if done.returncode:
        if any(words in done.stderr for words in UNREACHABLE):
            reason = next(line for line in done.stderr.splitlines() if "rror" in line)
            raise NodeMissingError(f"npm could not fetch what {directory.name}/ needs: {reason}")
        raise subprocess.CalledProcessError(done.returncode, command, done.stdout, done.stderr)
