"""The position of a streaming query over several stores: one for each store, by its broker.

    {"stores": {"broker-a": {"physicalOffset": 4096, "fingerprint": 2774861}, "broker-b": {…}}}

Each is the position of a query over that store alone (`query.store.position`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from mqlake.errors import StoreError

Positions = dict[str, dict[str, Any]]
"""The checkpoint of the reader of each store, by broker."""


class _StoresPositionJson(msgspec.Struct, forbid_unknown_fields=True):
    stores: Positions


def read_positions(written: dict[str, Any]) -> Positions:
    """Return the positions of a checkpoint.

    Raises:
        StoreError: the checkpoint is not one over several stores.
    """
    try:
        return msgspec.convert(written, _StoresPositionJson).stores
    except msgspec.ValidationError:
        raise StoreError(
            "the checkpoint is not one over several stores: start a query over other paths with "
            "a new checkpoint"
        ) from None


def write_positions(positions: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the text for Spark's checkpoint."""
    return {"stores": dict(sorted(positions.items()))}
