"""Run mqlake as a child that ends with its parent.

`python -m mqlake.console.bound_process PARENT …`, in which PARENT is the parent's process id.
"""

from __future__ import annotations

import ctypes
import os
import runpy
import signal
import sys

_PR_SET_PDEATHSIG = 1


def end_with_parent(parent: int) -> None:
    """Have this process killed when its parent ends, however that happens.

    Args:
        parent: the process id of the parent.
    """
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        # The parent ended before this process asked for the signal.
        os._exit(1)


if __name__ == "__main__":
    end_with_parent(int(sys.argv.pop(1)))
    sys.argv[0] = "mqlake"
    runpy.run_module("mqlake", run_name="__main__", alter_sys=True)
