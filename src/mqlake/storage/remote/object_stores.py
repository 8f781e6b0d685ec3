"""File systems by URL: S3 and what speaks its protocol, HDFS, Google Cloud Storage, Azure.

A URL says where a store is. Settings with Hadoop's names (`fs.s3a.endpoint`) say how to reach it.
They come from the query, otherwise from Hadoop's and Spark's configuration files. If a setting is
in neither, the store's client looks in its usual places: AWS_* variables, ~/.aws, the machine's
role (docs/object-stores.md).
"""

# pyright: basic
# pyarrow has no types.

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

from mqlake.errors import FormatError, StoreError
from mqlake.storage.remote.azure_store import AZURE_SETTINGS, azure
from mqlake.storage.remote.google_store import GOOGLE_SETTINGS, google
from mqlake.storage.remote.hadoop_settings import settings_of_files
from mqlake.storage.shown_url import shown_url

S3_SETTINGS = {
    "fs.s3a.endpoint": "The server, such as `http://127.0.0.1:9000`. Unset: AWS.",
    "fs.s3a.endpoint.region": "The region of the bucket.",
    "fs.s3a.access.key": "The access key.",
    "fs.s3a.secret.key": "The secret key.",
    "fs.s3a.session.token": "The token of temporary keys.",
    "fs.s3a.assumed.role.arn": "A role to assume.",
    "fs.s3a.path.style.access": "`true`: the bucket is in the path, not in the host name.",
    "fs.s3a.connection.ssl.enabled": "`false`: HTTP, unless `fs.s3a.endpoint` has a scheme.",
    "fs.s3a.aws.credentials.provider": "If the name contains `Anonymous`, requests carry no "
    "credentials. Other classes are ignored: the client looks for credentials in its usual order.",
}
"""Settings of S3, and what they mean."""

SETTINGS = {**S3_SETTINGS, **GOOGLE_SETTINGS, **AZURE_SETTINGS}
"""Settings of all object stores."""

_S3_SCHEMES = ("s3", "s3a", "s3n")
_ATTEMPTS = 6
_CONNECT_SECONDS, _REQUEST_SECONDS = 10, 60


def check_settings(given: Mapping[str, str]) -> dict[str, str]:
    """Return settings if all of them exist.

    Raises:
        FormatError: one does not.
    """
    for name in given:
        if name not in SETTINGS:
            known = ", ".join(SETTINGS)
            raise FormatError(
                f"there is no setting {name[:200]!r} of object stores; the settings are {known}"
            )
    return dict(given)


def filesystem_of(url: str, settings: Mapping[str, str]) -> tuple[Any, str]:
    """Return the `pyarrow.fs.FileSystem` of a URL, and the path in it.

    Args:
        settings: by name; they come before those of configuration files.

    Raises:
        StoreError: a client is missing, or the URL lacks a part.
        OSError, ValueError: pyarrow's, for a URL that it does not know.
    """
    from pyarrow.fs import FileSystem

    scheme = urlsplit(url).scheme.lower()
    if scheme in _S3_SCHEMES:
        return _s3(url, {**settings_of_files("fs.s3a."), **settings})
    if scheme in ("hdfs", "viewfs"):
        from mqlake.storage.remote.hdfs import hdfs

        return hdfs(url)
    if scheme == "gs":
        return google(url, settings)
    if scheme in ("abfs", "abfss"):
        return azure(url, settings)
    return FileSystem.from_uri(url)


def _s3(url: str, settings: Mapping[str, str]) -> tuple[Any, str]:
    from pyarrow.fs import AwsStandardS3RetryStrategy, FileSystem, S3FileSystem

    parts = urlsplit(url)
    if not parts.netloc:
        raise StoreError(
            f"{shown_url(url)}: the bucket is missing: write {parts.scheme}://bucket/path"
        )
    if parts.query or "@" in parts.netloc:
        # What pyarrow lets a URL say: endpoint_override, region, keys.
        return FileSystem.from_uri(f"s3{url[len(parts.scheme) :]}")
    endpoint = _endpoint(settings)
    filesystem = S3FileSystem(
        **_credentials(settings),
        **endpoint,
        region=settings.get("fs.s3a.endpoint.region") or _region(parts.netloc, endpoint),
        connect_timeout=_CONNECT_SECONDS,
        request_timeout=_REQUEST_SECONDS,
        retry_strategy=AwsStandardS3RetryStrategy(max_attempts=_ATTEMPTS),
    )
    return filesystem, unquote(parts.netloc + parts.path).rstrip("/")


def _region(bucket: str, endpoint: Mapping[str, Any]) -> str | None:
    """Return the region of a bucket of AWS, which no request may miss; None to let pyarrow look."""
    from pyarrow.fs import resolve_s3_region

    if endpoint or os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION"):
        return None
    return resolve_s3_region(bucket)


def _credentials(settings: Mapping[str, str]) -> dict[str, Any]:
    if "Anonymous" in settings.get("fs.s3a.aws.credentials.provider", ""):
        return {"anonymous": True}
    if role := settings.get("fs.s3a.assumed.role.arn"):
        return {"role_arn": role}
    access, secret = settings.get("fs.s3a.access.key"), settings.get("fs.s3a.secret.key")
    if (access is None) != (secret is None):
        missing = "fs.s3a.secret.key" if secret is None else "fs.s3a.access.key"
        raise StoreError(f"{missing} is missing: give both keys of S3, or neither")
    if access is None:
        return {}
    token = settings.get("fs.s3a.session.token")
    return {"access_key": access, "secret_key": secret, "session_token": token}


def _endpoint(settings: Mapping[str, str]) -> dict[str, Any]:
    is_by_path = settings.get("fs.s3a.path.style.access", "true").lower() == "true"
    # pyarrow looks at these variables only if it makes a file system of a URL.
    variables = (os.environ.get(name) for name in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"))
    endpoint = settings.get("fs.s3a.endpoint") or next(filter(None, variables), None)
    if endpoint is None:
        return {}
    scheme, sign, host = endpoint.rpartition("://")
    if not sign:
        is_plain = settings.get("fs.s3a.connection.ssl.enabled", "true").lower() == "false"
        scheme = "http" if is_plain else "https"
    return {
        "endpoint_override": host.rstrip("/"),
        "scheme": scheme,
        "force_virtual_addressing": not is_by_path,
    }
