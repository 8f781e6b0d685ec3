"""What a process of attacks needs, imported and loaded: see `tests.attacks.forked`."""

from __future__ import annotations

import tests.attacks.broker_process
import tests.attacks.honest_client  # noqa: F401
from mqlake.broker.pull import warm_up as pulls
from mqlake.broker.send import warm_up as sends
from mqlake.cli import app  # noqa: F401
from mqlake.programs import serve  # noqa: F401
from mqlake.programs.kernels import load_kernels

load_kernels()
sends.load()
pulls.load()
