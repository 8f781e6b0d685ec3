"""Python code in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys


def run(code: str, **environment: str) -> str:
    """Run Python code in a process of its own; return what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()
