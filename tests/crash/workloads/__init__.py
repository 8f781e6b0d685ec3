"""Scripts for a live store, each in a few dozen operations on files of a few kilobytes."""

from __future__ import annotations

from tests.crash.store_workload import WORKLOADS
from tests.crash.workloads import appends, config, derived, later, retention, rolls, stops

__all__ = ["WORKLOADS", "appends", "config", "derived", "later", "retention", "rolls", "stops"]
