"""The compiled kernels of light queues, called as `mqlake.store.light.light_kernel.LightKernel`."""

# pyright: basic
# Reason: compiled by Numba, whose types are inferred.

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from mqlake.dispatch.batch import Batch, Ints
from mqlake.dispatch.columns import RECORD
from mqlake.kernels.entry_point import entry_point_for
from mqlake.store.light.compiled import entries as _entries
from mqlake.store.light.compiled.find import find as _find
from mqlake.store.light.light_columns import (
    MESSAGE,
    NEWEST,
    LightAppended,
    LightBounds,
    LightBuffer,
    LightMessages,
    Newest,
    NewestRows,
)

__all__ = ["append", "collect", "find", "move"]

_BYTES, _LONGS = np.zeros(1, np.uint8), np.zeros(1, np.int64)
_ROWS, _MESSAGES = np.zeros(2, NEWEST), np.zeros(0, MESSAGE)


@cache
def _finder() -> Callable[..., Any]:
    key, records = np.zeros(8, np.uint8), np.zeros(0, RECORD)
    return entry_point_for(_find, _BYTES, records, np.zeros(0, np.int32), 0, key, _MESSAGES)


@cache
def _appender() -> Callable[..., Any]:
    file, rows, accepted = (_BYTES, 1, 0, 0, 1, 0), (_ROWS, _LONGS), np.zeros(0, np.bool_)
    return entry_point_for(_entries.append, *file, *rows, _MESSAGES, 0, 0, 0, accepted)


def load_all() -> None:
    """Compile each kernel, or load it from the cache."""
    _finder()
    _appender()
    file = LightBuffer(_BYTES, slots=1, capacity=0, base=0, following=1, queues=0)
    newest = Newest(np.zeros(2, NEWEST), np.zeros(1, np.int64))
    collect(file, 1, newest)
    move(newest.rows, newest, 0)


def find(
    batch: Batch, topics: Ints, first: int, seed: int, messages: LightMessages
) -> tuple[int, int]:
    key = np.frombuffer(bytearray(seed.to_bytes(8, "big")), np.uint8)
    return _finder()(batch.buffer, batch.records, topics, first, key, messages)


def append(
    file: LightBuffer,
    newest: Newest,
    messages: LightMessages,
    first: int,
    bounds: LightBounds,
    accepted: npt.NDArray[np.bool_],
) -> LightAppended:
    return LightAppended(*_appender()(*file, *newest, messages, first, *bounds, accepted))


def collect(file: LightBuffer, number: int, newest: Newest) -> int:
    return _entries.collect(file.data, file.slots, file.following, number, *newest)


def move(source: NewestRows, newest: Newest, low: int) -> None:
    _entries.move(source, *newest, low)
