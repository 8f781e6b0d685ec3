"""Open what option `path` names: a directory of this machine, or the URL of one."""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

from mqlake.storage.local import LocalDirectory
from mqlake.storage.protocol import Directory


def open_directory(path: str) -> Directory:
    """Return the directory; one of this machine is mapped, others are read through pyarrow.

    Raises:
        StoreError: a URL that pyarrow cannot open.
    """
    if path.startswith("file:"):
        return LocalDirectory(unquote(urlsplit(path).path))
    if "://" in path:
        from mqlake.storage.arrow_fs import open_url

        return open_url(path)
    return LocalDirectory(path)
