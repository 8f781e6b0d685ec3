"""The store that a path may mean, if the path is not a store."""

from __future__ import annotations

import os
import re
from pathlib import Path

from mqlake.store.log.segments import DIRECTORY

_ABOVE = 3
"""Directories above a path that may be its store: consumequeue/TOPIC/0 is the deepest."""

_PARTITION = re.compile(r".+-\d+")
"""The name of a partition's directory in a log directory of Kafka."""


NO_LOG = f"there is no {DIRECTORY}/ in it: give the store itself"
"""Why a place is not a store near which nothing is looked for."""


def why_no_store(path: str) -> str:
    """Return why a path is not a store, and what to give instead.

    Args:
        path: a local directory or file, or a URL, below which nothing is looked for.
    """
    if "://" in path:
        return NO_LOG
    given = Path(path).absolute()
    if not given.exists():
        return f"the directory does not exist{_of_the_shell(path)}"
    try:
        return _by_its_surroundings(given)
    except OSError:
        return f"there is no {DIRECTORY}/ in it, as far as it can be read"


def _of_the_shell(path: str) -> str:
    """Return what to give instead of a path that only a shell understands; "" for others."""
    meant = os.path.expandvars(f"$HOME{path[1:]}" if path.startswith("~/") else path)
    if meant == path or not Path(meant).is_dir():
        return ""
    return f": only a shell replaces ~ and variables; give {meant}"


def _by_its_surroundings(given: Path) -> str:
    for above in list(given.parents)[:_ABOVE]:
        if (above / DIRECTORY).is_dir():
            return f"this is inside a store: give the store itself, {above}"
    if not given.is_dir():
        return "this is a file; a store is a directory"
    for below in sorted(given.glob(f"*/{DIRECTORY}"))[:1]:
        return f"this contains a store: give the store itself, {below.parent}"
    partitions = (one for one in given.iterdir() if _PARTITION.fullmatch(one.name))
    if any(True for one in partitions for _ in one.glob("*.log")):
        return "this is a log directory of Kafka: use mqlake kafka, or Spark's format kafka-log"
    return f"there is no {DIRECTORY}/ in it, so it is not a RocketMQ store"
