"""The disk of tests is half full, however full the machine's is.

A store on a disk that is more than 85 % full removes its oldest messages whatever their age, and
one above 90 % takes no more.
"""

from __future__ import annotations

import shutil
from contextlib import AbstractContextManager
from typing import NamedTuple
from unittest import mock

_real = shutil.disk_usage


class Usage(NamedTuple):
    """What `shutil.disk_usage` returns, in bytes."""

    total: int
    used: int
    free: int


def use() -> None:
    """Let all stores of this process have such a disk."""
    shutil.disk_usage = lambda path: Usage(1 << 40, 1 << 39, 1 << 39)  # type: ignore[assignment]


def real() -> AbstractContextManager[object]:
    """Let stores have the machine's disk."""
    return mock.patch.object(shutil, "disk_usage", _real)
