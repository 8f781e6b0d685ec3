"""What `mqlake broker` imports and loads at its start: see `tests.programs.forked`."""

from __future__ import annotations

from mqlake.broker.pull import warm_up as pulls
from mqlake.broker.send import warm_up as sends
from mqlake.cli import app  # noqa: F401
from mqlake.programs import serve  # noqa: F401
from mqlake.programs.kernels import load_kernels
from tests.programs import forked  # noqa: F401

load_kernels()
sends.load()
pulls.load()
