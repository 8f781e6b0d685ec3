"""Files of a lake table: on a file system that is mounted here, or on an object store."""

# pyright: basic
# Reason: pyarrow carries no types.

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from pyarrow import parquet
from pyarrow.fs import FileSelector, FileType

from mqlake.storage.arrow_fs import one_line
from mqlake.storage.hadoop_settings import settings_of_files
from mqlake.storage.object_stores import filesystem_of

S3 = "s3://"
_MOST_BYTES = 1 << 20

_DELTA = {
    "fs.s3a.endpoint": "AWS_ENDPOINT_URL",
    "fs.s3a.endpoint.region": "AWS_REGION",
    "fs.s3a.access.key": "AWS_ACCESS_KEY_ID",
    "fs.s3a.secret.key": "AWS_SECRET_ACCESS_KEY",
    "fs.s3a.session.token": "AWS_SESSION_TOKEN",
    "fs.s3a.assumed.role.arn": "AWS_IAM_ROLE_ARN",
}
_ICEBERG = {
    "fs.s3a.endpoint": "s3.endpoint",
    "fs.s3a.endpoint.region": "s3.region",
    "fs.s3a.access.key": "s3.access-key-id",
    "fs.s3a.secret.key": "s3.secret-access-key",
    "fs.s3a.session.token": "s3.session-token",
    "fs.s3a.assumed.role.arn": "s3.role-arn",
}


class LakeFiles(msgspec.Struct, frozen=True):
    """The files of a table, by absolute paths or URLs.

    Attributes:
        settings: of the object store, by Hadoop's names; they may be secrets.
    """

    settings: dict[str, str] = {}

    def __repr__(self) -> str:
        return f"LakeFiles({', '.join(self.settings)})"

    def create(self, path: str) -> Any:
        """Open a new file for writing; an object appears once it is closed."""
        if not is_url(path):
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            return Path(path).open("xb")
        with one_line(path):
            filesystem, inner = filesystem_of(path, self.settings)
            return filesystem.open_output_stream(inner)

    def complete(self, path: str, file: Any) -> int:
        """Close a file; return its size once it is durable."""
        if not is_url(path):
            file.flush()
            os.fsync(file.fileno())
            file.close()
            sync_directory(Path(path).parent)
            return Path(path).stat().st_size
        with one_line(path):
            file.close()
            filesystem, inner = filesystem_of(path, self.settings)
            return int(filesystem.get_file_info(inner).size)

    def remove(self, path: str) -> None:
        """Remove a file; fine if it is gone."""
        if not is_url(path):
            Path(path).unlink(missing_ok=True)
            return
        with one_line(path):
            filesystem, inner = filesystem_of(path, self.settings)
            if filesystem.get_file_info(inner).type == FileType.File:
                filesystem.delete_file(inner)

    def parquet(self, path: str) -> Any:
        """Open a Parquet file."""
        if not is_url(path):
            return parquet.ParquetFile(path)
        with one_line(path):
            filesystem, inner = filesystem_of(path, self.settings)
            return parquet.ParquetFile(filesystem.open_input_file(inner), pre_buffer=True)

    def read(self, path: str) -> bytes:
        """Return the content of a small object."""
        with one_line(path):
            filesystem, inner = filesystem_of(path, self.settings)
            with filesystem.open_input_stream(inner) as stream:
                return stream.read(_MOST_BYTES)

    def metadata(self, path: str) -> Any:
        """Return the metadata of a Parquet file."""
        with self.parquet(path) as opened:
            return opened.metadata

    def exists(self, directory: str) -> bool:
        """Return whether there is a directory, or an object below it."""
        if not is_url(directory):
            return Path(directory).exists()
        with one_line(directory):
            filesystem, inner = filesystem_of(directory, self.settings)
            return filesystem.get_file_info(inner).type == FileType.Directory

    def walk(self, directory: str) -> Iterator[tuple[str, float]]:
        """Yield the files below a directory, and when each was written (seconds since 1970)."""
        if not is_url(directory):
            for path in Path(directory).rglob("*"):
                if path.is_file():
                    yield str(path), path.stat().st_mtime
            return
        with one_line(directory):
            filesystem, inner = filesystem_of(directory, self.settings)
            selector = FileSelector(inner, allow_not_found=True, recursive=True)
            for found in filesystem.get_file_info(selector):
                if found.type == FileType.File:
                    yield f"{S3}{found.path}", found.mtime_ns / 1e9


def is_url(path: str) -> bool:
    """Return whether a path names an object of an object store."""
    return path.startswith(S3)


def sync_directory(path: Path) -> None:
    """Return once the names in a directory are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def delta_options(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the storage options of delta-rs. Commits need a store with conditional puts."""
    known = _known(settings)
    found = {_DELTA[name]: value for name, value in known.items() if name in _DELTA}
    if (known.get("fs.s3a.endpoint") or "").startswith("http://"):
        found["AWS_ALLOW_HTTP"] = "true"
    if "Anonymous" in known.get("fs.s3a.aws.credentials.provider", ""):
        found["AWS_SKIP_SIGNATURE"] = "true"
    return {**found, "aws_conditional_put": "etag"}


def iceberg_options(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of PyIceberg's FileIO."""
    known = _known(settings)
    found = {_ICEBERG[name]: value for name, value in known.items() if name in _ICEBERG}
    if "Anonymous" in known.get("fs.s3a.aws.credentials.provider", ""):
        found["s3.anonymous"] = "true"
    return found


def _known(settings: Mapping[str, str]) -> dict[str, str]:
    """Return settings, also those of configuration files and the endpoint of the environment."""
    known = {**settings_of_files("fs.s3a."), **settings}
    variables = (os.environ.get(name) for name in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"))
    endpoint = known.get("fs.s3a.endpoint") or next(filter(None, variables), None)
    if endpoint is not None:
        is_plain = known.get("fs.s3a.connection.ssl.enabled", "true").lower() == "false"
        scheme = "http" if is_plain else "https"
        known["fs.s3a.endpoint"] = endpoint if "://" in endpoint else f"{scheme}://{endpoint}"
    return known
