"""Google Cloud Storage: settings by Hadoop's names, and the file system of a URL."""

# pyright: basic
# pyarrow has no types.

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

from mqlake.errors import StoreError
from mqlake.storage.remote.hadoop_settings import settings_of_files
from mqlake.storage.shown_url import shown_url

ENDPOINT = "fs.gs.storage.root.url"
_AUTHENTICATION = "fs.gs.auth.type"
GOOGLE_SETTINGS = {
    ENDPOINT: "The server, such as `http://127.0.0.1:4443`. Unset: Google.",
    _AUTHENTICATION: "`UNAUTHENTICATED`: requests carry no credentials. Other values are ignored.",
}
"""Settings of Google Cloud Storage, and what they mean."""


def google_settings(given: Mapping[str, str]) -> dict[str, str]:
    """Return settings, and those of configuration files that they lack."""
    return {**settings_of_files("fs.gs."), **given}


def is_anonymous(settings: Mapping[str, str]) -> bool:
    """Return whether requests carry no credentials."""
    return settings.get(_AUTHENTICATION, "").upper() == "UNAUTHENTICATED"


def google(url: str, given: Mapping[str, str]) -> tuple[Any, str]:
    """Return the file system of `gs://bucket/path`, and the path in it."""
    from pyarrow.fs import FileSystem, GcsFileSystem

    parts = urlsplit(url)
    if not parts.netloc:
        raise StoreError(f"{shown_url(url)}: the bucket is missing: write gs://bucket/path")
    if parts.query or "@" in parts.netloc:
        return FileSystem.from_uri(url)
    settings = google_settings(given)
    scheme, _, host = settings.get(ENDPOINT, "").rpartition("://")
    server = {"endpoint_override": host.rstrip("/"), "scheme": scheme or "https"} if host else {}
    filesystem = GcsFileSystem(anonymous=is_anonymous(settings), **server)
    return filesystem, unquote(parts.netloc + parts.path).rstrip("/")
