"""Compile the kernels that read sends, or load them from the cache, before they are needed.

`python -m mqlake.broker.send.warm_up` fills the cache once, at set-up.
"""

from __future__ import annotations

import numpy as np

from mqlake.broker.send import run_frames, single_frames
from mqlake.broker.send.run_frames import Most, SendAnswers, SendRuns
from mqlake.broker.send.single_frames import SingleFrames
from mqlake.kernels import jit
from mqlake.protocol.command import Command, Serialization

KERNELS = (*run_frames.KERNELS, *single_frames.KERNELS)


def load() -> None:
    """Call each kernel once, without a frame; another process compiles if possible."""
    jit.compile_elsewhere(KERNELS, __spec__.name)
    call_each()


def call_each() -> None:
    """Call each kernel once, without a frame; compile those that are not in the cache."""
    nothing = np.frombuffer(b"", np.uint8)
    runs = SendRuns(Most(0, 0, 0))
    runs.find_batches(b"", 0, nothing, 1)
    run = runs.find(b"", 0, nothing, 1, nothing)
    SendAnswers(Command(0, serialization=Serialization.ROCKETMQ), "").of(run, 0)
    SingleFrames(Most(0, 0, 0), b"").read(b"", 0)


if __name__ == "__main__":
    call_each()
