"""A disk that refuses each of the operations of a workload in turn."""

from __future__ import annotations
