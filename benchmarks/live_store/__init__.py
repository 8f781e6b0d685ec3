"""The live store beside Java's: put, recover, get, open and roll."""

from __future__ import annotations

from benchmarks.live_store import get, opening, put, recovery

MEASURES = {
    "live_store_put": put.measure,
    "live_store_recovery": recovery.measure,
    "live_store_get": get.measure,
    "live_store_open": opening.measure,
}
