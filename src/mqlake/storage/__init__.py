"""The interface to the disk: directories and files, real or in memory.

`Directory` and `OwnedDirectory` are the protocols that everything above is written for. Here are
their implementations, the lock of a directory's owner, and the clock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mqlake.storage.clock import Clock as Clock
    from mqlake.storage.clock import SystemClock as SystemClock
    from mqlake.storage.local import LocalDirectory as LocalDirectory
    from mqlake.storage.local_owned import LocalOwnedDirectory as LocalOwnedDirectory
    from mqlake.storage.memory import MemoryDirectory as MemoryDirectory
    from mqlake.storage.owner_lock import OwnerLock as OwnerLock
    from mqlake.storage.protocol import Directory as Directory
    from mqlake.storage.protocol import DiskUsage as DiskUsage
    from mqlake.storage.protocol import OwnedDirectory as OwnedDirectory
    from mqlake.storage.protocol import ReadableFile as ReadableFile
    from mqlake.storage.protocol import WritableFile as WritableFile
    from mqlake.storage.remote.arrow_fs import ArrowDirectory as ArrowDirectory
    from mqlake.storage.remote.arrow_fs import open_url as open_url
else:
    from mqlake.exports import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "ArrowDirectory": "remote.arrow_fs",
            "open_url": "remote.arrow_fs",
            "Clock": "clock",
            "SystemClock": "clock",
            "LocalDirectory": "local",
            "LocalOwnedDirectory": "local_owned",
            "MemoryDirectory": "memory",
            "OwnerLock": "owner_lock",
            "Directory": "protocol",
            "DiskUsage": "protocol",
            "OwnedDirectory": "protocol",
            "ReadableFile": "protocol",
            "WritableFile": "protocol",
        },
    )
