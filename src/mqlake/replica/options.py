"""What a replica is asked to do."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from mqlake.protocol.signature import Credentials
from mqlake.remoting.tls.options import ClientTls

_FOR_EVER = 1_000_000
"""Hours: the most that `fileReservedTime` may be."""
_ALL_HOURS = ";".join(f"{hour:02}" for hour in range(24))


class ReplicaOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Which master is copied, and where to.

    Attributes:
        master: the broker name, or the "host:port" at which it serves clients.
        store: directory of the copy.
        name_servers: "host:port", several separated by `;`.
        tls: how connections use TLS; None for clear text.
        has_ha_tls: whether the log itself is copied over TLS, too, if requests are. RocketMQ's
            masters cannot do that.
        credentials: sign the requests; None for a master without authentication.
        ha_address: the "host:port" of the master's port for slaves; None if its settings tell.
        keep_hours: segments that were closed longer ago are removed; None keeps them.
        keep_bytes: the oldest segments are removed while there are more bytes; None keeps them.
        is_counted: whether the master's puts may wait for this copy, as for a slave's.
        is_patient: whether a master that does not answer is asked again; else that is an error.
    """

    master: str
    store: Path
    name_servers: str = ""
    tls: ClientTls | None = None
    has_ha_tls: bool = True
    credentials: Credentials | None = None
    ha_address: str | None = None
    keep_hours: int | None = None
    keep_bytes: int | None = None
    is_counted: bool = False
    is_patient: bool = True

    def settings(self, name: str, files: Mapping[str, int]) -> dict[str, object]:
        """Return settings of the store, as those of a broker that is a slave.

        Args:
            name: of the broker.
            files: sizes of files, by setting: those of the master.
        """
        return {
            "brokerName": name,
            "brokerRole": "SLAVE",
            "fileReservedTime": _FOR_EVER if self.keep_hours is None else self.keep_hours,
            "deleteWhen": _ALL_HOURS,
            "maxCommitLogBytes": self.keep_bytes or 0,
            # A full disk stops the copy, which continues when there is room. It removes nothing.
            "cleanFileForciblyEnable": False,
            **files,
        }
