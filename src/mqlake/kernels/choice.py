"""Which twin runs: compiled kernels, or what they do in plain Python.

Every package with kernels has both, and the same tests for both. Where the twin is chosen by how
much there is to do, as for Kafka's logs, MQLAKE_KERNEL=compiled|reference still overrides it.
"""

from __future__ import annotations

import os
from typing import Final, Literal

from mqlake.errors import MqlakeError

Twin = Literal["compiled", "reference"]

_TWINS: Final = ("compiled", "reference")


def chosen() -> Twin | None:
    """Return what MQLAKE_KERNEL says, None if it says nothing.

    Raises:
        MqlakeError: it names no kernels.
    """
    name = os.environ.get("MQLAKE_KERNEL")
    return checked(name) if name else None


def checked(name: str) -> Twin:
    """Return the twin of a name.

    Raises:
        MqlakeError: there are no such kernels.
    """
    if name not in _TWINS:
        raise MqlakeError(
            f'there are no kernels named {name!r}; set MQLAKE_KERNEL to "compiled" or "reference"'
        )
    return name
