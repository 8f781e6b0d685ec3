"""Compile the kernel for runs of pulls, or load it from the cache, before it is needed.

`python -m mqlake.broker.pull.warm_up` fills the cache once, at set-up.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mqlake.broker.pull.compiled.pull_frames import serve_pulls
from mqlake.kernels import jit

KERNELS = (serve_pulls,)


def load() -> Callable[..., Any]:
    """Call the kernel once and return it; another process compiles it if possible."""
    jit.compile_elsewhere(KERNELS, __spec__.name)
    call_each()
    return serve_pulls


def call_each() -> None:
    """Call the kernel once, without a frame; compile it if it is not in the cache."""
    nothing, target = np.frombuffer(b"", np.uint8), np.empty(1, np.uint8)
    numbers, parts = np.zeros((1, 6), np.int64), np.frombuffer(b"", np.int64).reshape(0, 4)
    shape = nothing, parts, nothing, parts
    out = target, 0, numbers
    serve_pulls(nothing, 0, 0, *shape, numbers, 0, 0, target, numbers, numbers, 0, *out)


if __name__ == "__main__":
    call_each()
