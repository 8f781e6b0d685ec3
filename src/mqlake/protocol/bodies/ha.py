"""How far a broker's log is at its slaves (upstream: `HARuntimeInfo`)."""

from __future__ import annotations

import msgspec


class HaConnectionInfo(msgspec.Struct, rename="camel"):
    """A slave, as its master sees it. Offsets are physical, rates bytes a second.

    Attributes:
        slave_ack_offset: before which the slave has everything.
        diff: bytes of the master's log that the slave lacks.
        transfer_from_where: of the byte that is sent next.
    """

    addr: str = ""
    slave_ack_offset: int = 0
    diff: int = 0
    in_sync: bool = False
    transferred_byte_in_second: int = 0
    transfer_from_where: int = 0


class HaClientInfo(msgspec.Struct, rename="camel"):
    """A slave, as it sees itself. Offsets are physical, times milliseconds.

    Attributes:
        problem: why the log is not copied now, "" if it is (mqlake's own).
    """

    master_addr: str = ""
    transferred_byte_in_second: int = 0
    max_offset: int = 0
    last_read_timestamp: int = 0
    last_write_timestamp: int = 0
    master_flush_offset: int = 0
    problem: str = ""


class HaRuntimeInfo(msgspec.Struct, rename="camel"):
    """The answer to GET_BROKER_HA_STATUS."""

    master: bool = True
    master_commit_log_max_offset: int = 0
    in_sync_slave_nums: int = 0
    ha_connection_info: list[HaConnectionInfo] = []
    ha_client_runtime_info: HaClientInfo = msgspec.field(default_factory=HaClientInfo)
