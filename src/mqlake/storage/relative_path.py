"""Check the relative paths that storage takes."""

from __future__ import annotations

from mqlake.errors import StoreError


def check_path(path: str) -> str:
    """Return `path` if it stays inside of its tree: no absolute path, no "..", no NUL.

    Raises:
        StoreError: it does not.
    """
    if path.startswith("/") or "\0" in path or ".." in path.split("/"):
        raise StoreError(f"not a path inside the store: {path[:300]!r}")
    return path
