"""Take the fields of a batch's records apart, each into an array of its own."""

# pyright: basic
# Reason: compiled by Numba, whose types are inferred.

from __future__ import annotations

import numpy as np

from mqlake.formats import host, record, sys_flag
from mqlake.kernels.jit import kernel
from mqlake.kernels.memory import borrow, load_i32, load_i64

_BORN_HOST_V6, _STORE_HOST_V6 = sys_flag.BORN_HOST_V6, sys_flag.STORE_HOST_V6
_V4_SIZE, _V6_SIZE = host.V4_SIZE, host.V6_SIZE
_BODY_CRC_AT, _FLAG_AT = record.BODY_CRC_AT, record.FLAG_AT
_BORN_TIMESTAMP_AT, _BORN_HOST_AT = record.BORN_TIMESTAMP_AT, record.BORN_HOST_AT


@kernel
def heads(buffer, base, records):
    """Return the fields of `mqlake.dispatch.answers.Heads`."""
    buffer, records = borrow(buffer), borrow(records)
    count = len(records)
    body_crc, flag = np.empty(count, np.int32), np.empty(count, np.int32)
    born, times = np.empty(count, np.int64), np.empty(count, np.int32)
    prepared = np.empty(count, np.int64)
    born_host_at, born_v6 = np.empty(count, np.int64), np.empty(count, np.bool_)
    store_host_at, store_v6 = np.empty(count, np.int64), np.empty(count, np.bool_)
    for row in range(count):
        found = records[row]
        start, flags = found.physical_offset - base, found.sys_flag
        body_crc[row] = load_i32(buffer, start + _BODY_CRC_AT)
        flag[row] = load_i32(buffer, start + _FLAG_AT)
        born[row] = load_i64(buffer, start + _BORN_TIMESTAMP_AT)
        born_host_at[row] = start + _BORN_HOST_AT
        born_v6[row] = flags & _BORN_HOST_V6 != 0
        store_v6[row] = flags & _STORE_HOST_V6 != 0
        store_at = start + _BORN_HOST_AT + (_V6_SIZE if born_v6[row] else _V4_SIZE) + 8
        store_host_at[row] = store_at
        behind = store_at + (_V6_SIZE if store_v6[row] else _V4_SIZE)
        times[row] = load_i32(buffer, behind)
        prepared[row] = load_i64(buffer, behind + 4)
    return (
        body_crc,
        flag,
        born,
        times,
        prepared,
        *(born_host_at, born_v6),
        *(store_host_at, store_v6),
    )
