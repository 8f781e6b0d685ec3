"""Run mqlake as a child that ends with its parent: `python -m mqlake.console.bound_process …`."""

from __future__ import annotations

import ctypes
import os
import runpy
import signal
import sys

_PR_SET_PDEATHSIG = 1
_ORPHANED = 1
"""The parent of a process whose parent has ended."""


def end_with_parent() -> None:
    """Have this process killed when its parent ends, however that happens."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() == _ORPHANED:
        # The parent ended before this process asked for the signal.
        os._exit(1)


if __name__ == "__main__":
    end_with_parent()
    sys.argv[0] = "mqlake"
    runpy.run_module("mqlake", run_name="__main__", alter_sys=True)
