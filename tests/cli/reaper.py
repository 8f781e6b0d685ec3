"""Run a command, and wait for all processes that it leaves: `reaper.py COMMAND...`.

PySpark does not wait for its JVM. The CPU time of processes for which nobody waits is in no sum.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from contextlib import suppress

_PR_SET_CHILD_SUBREAPER = 36


def main() -> int:
    """Become the parent of processes whose parent has ended; return the command's status."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)
    status = subprocess.call(sys.argv[1:])
    with suppress(ChildProcessError):
        while True:
            os.wait()
    return status


if __name__ == "__main__":
    sys.exit(main())
