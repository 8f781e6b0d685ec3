"""Whether the lane is used: MQLAKE_LANE=on|off decides it."""

from __future__ import annotations

import os
import select
from typing import Final

from mqlake.dispatch.kernel import is_compiled
from mqlake.errors import MqlakeError

_NAMES: Final = {"on": True, "off": False}


def is_chosen() -> bool:
    """Return whether the lane is wanted, and this system and its kernels allow it.

    Raises:
        MqlakeError: MQLAKE_LANE has another value.
    """
    name = os.environ.get("MQLAKE_LANE", "on")
    if name not in _NAMES:
        raise MqlakeError(f'MQLAKE_LANE is {name!r}; set it to "on" or "off"')
    return _NAMES[name] and hasattr(select, "epoll") and is_compiled()
