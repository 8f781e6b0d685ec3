"""Bodies of requests between brokers and controllers."""

from __future__ import annotations

import msgspec


class SyncStateSet(msgspec.Struct, rename="camel"):
    """The brokers that may be elected (upstream: `SyncStateSet`, `ElectMasterResponseBody`)."""

    sync_state_set: list[int] | None = None
    sync_state_set_epoch: int = 0


class EpochEntry(msgspec.Struct, rename="camel"):
    """The term of one master; the last one ends at 2^63 - 1."""

    epoch: int
    start_offset: int
    end_offset: int


class EpochEntryCache(msgspec.Struct, rename="camel"):
    """The answer to GET_BROKER_EPOCH_CACHE."""

    cluster_name: str
    broker_name: str
    broker_id: int
    epoch_list: list[EpochEntry]
    max_offset: int
