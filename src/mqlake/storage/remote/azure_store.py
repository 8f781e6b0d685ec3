"""Azure's object store: settings by Hadoop's names, and the file system of a URL."""

# pyright: basic
# pyarrow has no types.

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

from mqlake.errors import StoreError
from mqlake.storage.remote.hadoop_settings import settings_of_files
from mqlake.storage.shown_url import shown_url

ENDPOINT, KEY, SAS = "fs.azure.abfs.endpoint", "fs.azure.account.key", "fs.azure.sas.fixed.token"
AZURE_SETTINGS = {
    ENDPOINT: "The server, such as `http://127.0.0.1:10000`. Unset: Azure.",
    KEY: "The key of the storage account.",
    SAS: "A shared access signature, instead of a key.",
}
"""Settings of Azure's object store, and what they mean."""


def azure_settings(url: str, given: Mapping[str, str]) -> dict[str, str]:
    """Return settings, and those of configuration files that they lack.

    Files may name the account at the end of a name, as in
    `fs.azure.account.key.ACCOUNT.dfs.core.windows.net`; that comes before the plain name.
    """
    files, suffix = settings_of_files("fs.azure."), f".{urlsplit(url).hostname}"
    own = {
        name.removesuffix(suffix): value for name, value in files.items() if name.endswith(suffix)
    }
    return {**files, **own, **given}


def account_of(url: str) -> str:
    """Return the storage account of a URL.

    Raises:
        StoreError: the URL lacks the container or the account.
    """
    parts = urlsplit(url)
    account = (parts.hostname or "").partition(".")[0]
    if not parts.username or not account:
        raise StoreError(
            f"{shown_url(url)}: write {parts.scheme}://container@account.dfs.core.windows.net/path"
        )
    return account


def azure(url: str, given: Mapping[str, str]) -> tuple[Any, str]:
    """Return the file system of `abfss://container@account.dfs.core.windows.net/path`, and the
    path in it.
    """
    from pyarrow.fs import AzureFileSystem, FileSystem

    parts = urlsplit(url)
    if parts.query or parts.password:
        return FileSystem.from_uri(url)
    account, settings = account_of(url), azure_settings(url, given)
    scheme, _, host = settings.get(ENDPOINT, "").rpartition("://")
    server = {
        f"{kind}_storage_{part}": value
        for kind in ("blob", "dfs")
        for part, value in (("authority", host.rstrip("/")), ("scheme", scheme or "https"))
    }
    filesystem = AzureFileSystem(
        account_name=account,
        account_key=settings.get(KEY),
        sas_token=settings.get(SAS),
        **(server if host else {}),
    )
    return filesystem, unquote(f"{parts.username}{parts.path}").rstrip("/")
