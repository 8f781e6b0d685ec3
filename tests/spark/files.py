"""Compare directories by what is in them."""

from __future__ import annotations

import hashlib
from pathlib import Path


def digests(directory: Path) -> dict[str, str]:
    """Return the SHA-256 of each file below a directory, by its relative path."""
    return {
        str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }
