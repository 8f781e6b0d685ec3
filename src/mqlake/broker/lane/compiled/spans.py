"""Compare bytes of frames with known texts."""

# pyright: basic
# Reason: compiled by Numba, whose types are inferred.

from __future__ import annotations

import numpy as np

from mqlake.kernels.jit import inlined
from mqlake.kernels.memory import load_u8


def text_bytes(text):
    """Return a text in the form with which kernels compare."""
    return np.frombuffer(text.encode(), np.uint8)


@inlined
def begins(data, at, end, text):
    """Return whether the bytes from `at` to `end` begin with a text."""
    # Not `equal_bytes`, which loads whole words and so needs bytes before the text.
    size = len(text)
    if end - at < size:
        return False
    for place in range(size):  # noqa: SIM110 (Numba knows no generators)
        if load_u8(data, at + place) != text[place]:
            return False
    return True


@inlined
def is_text(data, at, length, text):
    """Return whether bytes are a text."""
    return length == len(text) and begins(data, at, at + length, text)
