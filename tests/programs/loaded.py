"""What `mqlake broker` imports and loads at its start: see `tests.programs.forked`."""

from __future__ import annotations

import subprocess
import sys

from mqlake.broker.lane import kernel as lane
from mqlake.broker.lane import pull_kernel
from mqlake.cli import app  # noqa: F401
from mqlake.programs import serve  # noqa: F401
from mqlake.programs.kernels import load_kernels
from tests.programs import forked  # noqa: F401

# A process that compiles keeps the compiler's memory, and so would all that are forked from it.
subprocess.run([sys.executable, "-m", "mqlake.dispatch.warm_up"], check=True)
load_kernels()
pull_kernel.call_each()
lane.load()
