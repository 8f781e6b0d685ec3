"""Change a few bytes of what a client sends."""

from __future__ import annotations

import random
from collections.abc import Sequence


def mutated(data: bytes, chance: random.Random, odd: Sequence[int]) -> bytes:
    """Return bytes with up to four changes.

    Args:
        odd: bytes that mean something in such data.
    """
    found = bytearray(data)
    for _ in range(chance.randrange(1, 5)):
        at = chance.randrange(len(found)) if found else 0
        match chance.randrange(5):
            case 0 if found:
                found[at] ^= 1 << chance.randrange(8)
            case 1 if found:
                found[at] = chance.choice(odd)
            case 2:
                del found[at : at + chance.randrange(1, 9)]
            case 3:
                found[at:at] = found[at : at + chance.randrange(1, 17)]
            case _:
                end = at + chance.randrange(1, 17)
                found[at:end] = bytes(reversed(found[at:end]))
    return bytes(found)
