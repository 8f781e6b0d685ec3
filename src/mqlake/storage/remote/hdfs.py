"""HDFS: through a client in Python if one is installed, else through Hadoop's own library."""

# pyright: basic
# Reason: pyarrow and the clients carry no types.

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache, partial
from typing import Any
from urllib.parse import unquote, urlsplit

from mqlake.errors import StoreError
from mqlake.storage.shown_url import shown_url

_INSTALL = (
    "install one that needs no Java (pip install 'mqlake[hdfs]'), or Hadoop itself, with "
    "HADOOP_HOME, JAVA_HOME and CLASSPATH=$(hadoop classpath --glob) set"
)


def hdfs(url: str) -> tuple[Any, str]:
    """Return the file system of `hdfs://host:port/path`, and the path in it.

    Raises:
        StoreError: no client is installed.
        OSError: a client cannot reach the cluster.
    """
    from pyarrow.fs import FSSpecHandler, PyFileSystem

    parts, shown = urlsplit(url), shown_url(url)
    if not parts.netloc:
        raise StoreError(
            f"{shown}: the name node is missing: write {parts.scheme}://host:port/path"
        )
    try:
        client = _client(parts.hostname, parts.port, os.getpid())
    except ImportError:
        return _library(url)
    except Exception as error:
        reason = " ".join(str(error).replace(url, shown).split())
        raise StoreError(f"{shown}: {reason}") from error
    return PyFileSystem(FSSpecHandler(client)), unquote(parts.path).rstrip("/") or "/"


def atomic_replace(filesystem: Any) -> Callable[[str, str], None] | None:
    """Return what moves a file over another atomically; None if the file system's client cannot."""
    from pyarrow.fs import FSSpecHandler

    handler = getattr(filesystem, "handler", None)
    if not isinstance(handler, FSSpecHandler) or "hdfs" not in handler.fs.protocol:
        return None
    return partial(handler.fs.mv, overwrite=True)


@cache
def _client(host: str | None, port: int | None, process: int) -> Any:  # noqa: ARG001
    """Return the client of a cluster, one for each process.

    A client's threads do not survive a fork, and whoever drops it in the child waits for them
    forever. fsspec's own cache does so, even in a child that only starts another program.
    """
    from hdfs_native.fsspec import HdfsFileSystem  # pyright: ignore[reportMissingImports]

    return HdfsFileSystem(host=host, port=port, skip_instance_cache=True)


def _library(url: str) -> tuple[Any, str]:
    from pyarrow.fs import FileSystem

    try:
        return FileSystem.from_uri(url)
    except OSError as error:
        reason = " ".join(str(error).split()).partition(" dlopen")[0]
        raise StoreError(
            f"{shown_url(url)}: no HDFS client is installed: {_INSTALL} ({reason})"
        ) from error
