"""How large attacks are: whole in `make nightly`, a sixteenth of that in `make test`.

The limits that an attack has to reach are cut alike, so that the same paths run.
"""

from __future__ import annotations

import os

WHOLE = "ATTACK_WHOLE"
"""The variable of the environment that asks for whole attacks."""

IS_WHOLE = WHOLE in os.environ


def part(whole: int) -> int:
    """Return how much of a count an attack uses."""
    return whole if IS_WHOLE else whole // 16
