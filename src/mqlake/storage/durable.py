"""Changes that need several steps to survive a power loss."""

from __future__ import annotations

from contextlib import suppress

from mqlake.errors import DiskError, StoreError
from mqlake.storage.protocol import OwnedDirectory, WritableFile

TEMPORARY = ".tmp"
"""Ends the name of a file's new content until it takes the place of the old."""


def make_directories(directory: OwnedDirectory, path: str) -> None:
    """Make a directory and those above it; return once they are on the disk.

    Raises:
        DiskError: the system refused it.
    """
    missing: list[str] = []
    while path and not directory.is_directory(path):
        missing.append(path)
        path = parent(path)
    for path in reversed(missing):
        directory.make_directory(path)
        try:
            directory.sync_directory(parent(path))
        except DiskError:
            # Whoever tries again must not find it, and take it for synced.
            with suppress(DiskError):
                directory.remove_directory(path)
            raise


def create_file(directory: OwnedDirectory, path: str, size: int) -> WritableFile:
    """Make a file of `size` zero bytes; return once its name and size are on the disk.

    Raises:
        DiskError: the system refused it.
    """
    file = directory.create(path, size)
    try:
        file.sync()
        directory.sync_directory(parent(path))
    except BaseException:
        file.close()
        raise
    return file


def replace_file(
    directory: OwnedDirectory, path: str, data: bytes, *, backup: str | None = None
) -> None:
    """Give a file new content in one step; return once it is on the disk.

    A crash leaves the old content or the new, never a mixture. Written beside it, as `path.tmp`.

    Args:
        backup: where the old content, if there is any, is kept.

    Raises:
        DiskError: the system refused it; the old content is still there, under one of both names.
    """
    temporary = f"{path}{TEMPORARY}"
    if directory.exists(temporary):
        # After a power loss during a rename it may be a second name of the old content.
        directory.remove(temporary)
    _write_whole(directory, temporary, data)
    if backup is not None and directory.exists(path):
        _keep(directory, path, backup)
    directory.replace(temporary, path)
    directory.sync_directory(parent(path))


def _keep(directory: OwnedDirectory, path: str, backup: str) -> None:
    # Copied, not renamed: there is never a moment without `path`.
    content = _read(directory, path)
    if content is None:
        return
    _write_whole(directory, f"{backup}{TEMPORARY}", content)
    directory.replace(f"{backup}{TEMPORARY}", backup)


def _read(directory: OwnedDirectory, path: str) -> bytes | None:
    """Return what is in a file, None if the disk cannot read it: the older backup is better."""
    try:
        old = directory.open(path)
        try:
            return old.read(0, old.size)
        finally:
            old.close()
    except DiskError:
        return None


def _write_whole(directory: OwnedDirectory, path: str, data: bytes) -> None:
    file = directory.create(path, len(data))
    try:
        if data:
            file.write(0, data)
        file.sync()
    except BaseException:
        file.close()
        with suppress(StoreError):
            directory.remove(path)
        raise
    file.close()


def remove_tree(directory: OwnedDirectory, path: str) -> None:
    """Remove a directory and all that is in it; fine if it is gone.

    Returns without waiting for the disk: after a power loss, any of it may be there again.

    Raises:
        DiskError: the system refused it.
    """
    for name in directory.names(path):
        below = f"{path}/{name}"
        try:
            directory.remove(below)  # of a symbolic link, the link
        except DiskError:
            if not directory.is_directory(below):
                raise
            remove_tree(directory, below)
    directory.remove_directory(path)


def parent(path: str) -> str:
    """Return the path of the directory that holds a name; "" is the root."""
    return path.rpartition("/")[0]


def base_name(path: str) -> str:
    """Return the name that a path ends with."""
    return path.rpartition("/")[2]
