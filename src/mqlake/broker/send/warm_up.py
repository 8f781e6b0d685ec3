"""Compile the kernels for runs of frames, or load them from the cache, before they are needed.

`python -m mqlake.broker.send.warm_up` fills the cache once, at set-up.
"""

from __future__ import annotations

import subprocess
import sys

import numpy as np

from mqlake.broker.send.run_frames import KERNELS, Most, SendAnswers, SendRuns
from mqlake.kernels import jit
from mqlake.protocol.command import Command, Serialization


def load() -> None:
    """Call each kernel once, on no frame.

    Another process fills the cache where it can: whoever compiles holds the interpreter, and
    thereby all other threads, for seconds.
    """
    if jit.CACHE is not None and not all(map(jit.is_cached, KERNELS)):
        subprocess.run(  # noqa: S603 (this module itself)
            [sys.executable, "-m", __spec__.name], check=False, capture_output=True
        )
    call_each()


def call_each() -> None:
    """Call each kernel once, on no frame; compile what is not in the cache."""
    nothing = np.frombuffer(b"", np.uint8)
    runs = SendRuns(Most(0, 0, 0))
    runs.find_batches(b"", 0, nothing, 1)
    run = runs.find(b"", 0, nothing, 1, nothing)
    SendAnswers(Command(0, serialization=Serialization.ROCKETMQ), "").of(run, 0)


if __name__ == "__main__":
    call_each()
