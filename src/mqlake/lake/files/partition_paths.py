"""Names of the directories of a partition."""

from __future__ import annotations

import hashlib
import re
from urllib.parse import quote

_LONGEST, _LONGEST_FOR_PEOPLE = 255, 100


def path_of(topic: str, day: str, *, is_hive: bool) -> tuple[str, str]:
    """Return the names of a partition's directories."""
    if is_hive:
        return _hive_name(topic), f"day={day}"
    return f"topic={re.sub(r'[^A-Za-z0-9._-]', '_', topic)[:_LONGEST_FOR_PEOPLE]}", f"day={day}"


def _hive_name(topic: str) -> str:
    """Return the name of a topic's directory.

    A name that is too long for file systems is cut, and ends with a digest. Readers of the
    directory see the cut name as the topic.
    """
    name = f"topic={quote(topic, safe='')}"
    if len(name) <= _LONGEST:
        return name
    digest = hashlib.sha256(topic.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    beginning = topic
    while len(name) + len(digest) >= _LONGEST:
        beginning = beginning[:-1]  # whole characters, as readers decode them
        name = f"topic={quote(beginning, safe='')}"
    return f"{name}~{digest}"
