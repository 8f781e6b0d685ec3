"""`python -m tests.spark.sink.killed STORE EPOCH STEP`: write an epoch, killed at a step."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from tests.spark.sink.steps import Countdown, write_epoch


def main() -> None:
    path, epoch, step = sys.argv[1:]
    with pytest.MonkeyPatch.context() as patch:
        countdown = Countdown(patch, lambda: os.kill(os.getpid(), signal.SIGKILL))
        countdown.start(int(step))
        write_epoch(Path(path), int(epoch))


if __name__ == "__main__":
    main()
