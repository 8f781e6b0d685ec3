"""Errors that mqlake raises. All have one root, so that `except MqlakeError` catches all of them.

    MqlakeError            the message is one line for a person: what, where, what to do
    ├── FormatError        bytes that do not follow their format
    ├── StoreError         a store directory that cannot be opened, read or written as asked
    │   └── DiskError      the system refused an operation on a file: full, broken, not allowed
    │       └── SyncError  what was written may be lost: no later success says otherwise
    └── JobError           a rebuild, verify or export that could not be carried out

Damage found while reading many records is not raised: it is reported
(`mqlake.formats.damage.Damage`), because the records around it are still good.
"""

import errno

_PASSING = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN, errno.EINTR})


class MqlakeError(Exception):
    """Root of all errors raised by mqlake."""


class FormatError(MqlakeError):
    """Bytes that do not follow their format."""


class StoreError(MqlakeError):
    """A store directory that cannot be opened, read or written as asked."""


class DiskError(StoreError):
    """The system refused an operation on a file: the disk is full or broken, or it is not allowed.

    Attributes:
        errno: the system's error number, such as `errno.ENOSPC`; 0 if it gave none.
    """

    def __init__(self, message: str, errno: int = 0) -> None:
        super().__init__(message)
        self.errno = errno


class SyncError(DiskError):
    """What was written may never reach the disk: a sync failed, or another process removed the
    file.

    After any other `DiskError`, the same call may succeed later. This error is final: the system
    reports a failed sync once, and may have dropped the bytes.
    """


class JobError(MqlakeError):
    """A rebuild, verify or export that could not be carried out."""


def raise_passing(error: Exception) -> None:
    """Raise an error again if the process lacked descriptors or memory for a file.

    For whoever continues without a missing or damaged file: such an error says nothing of the file.

    Raises:
        DiskError: `error`.
    """
    if isinstance(error, DiskError) and error.errno in _PASSING:
        raise error
