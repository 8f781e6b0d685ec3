"""Headers of what brokers and controllers ask each other (upstream: `header.controller`)."""

from __future__ import annotations

from mqlake.protocol.header import Header, Int32, Int64


class ControllerMetadataResponseHeader(Header):
    """The answer to CONTROLLER_GET_METADATA_INFO; without a leader, none was elected yet."""

    group: str | None = None
    controller_leader_id: str | None = None
    controller_leader_address: str | None = None
    is_leader: bool | None = None
    peers: str | None = None


class GetNextBrokerIdHeader(Header):
    """CONTROLLER_GET_NEXT_BROKER_ID."""

    cluster_name: str
    broker_name: str


class GetNextBrokerIdResponseHeader(Header):
    """The id that the next broker of this name gets."""

    next_broker_id: Int64


class ApplyBrokerIdHeader(Header):
    """CONTROLLER_APPLY_BROKER_ID."""

    cluster_name: str
    broker_name: str
    applied_broker_id: Int64
    register_check_code: str


class RegisterToControllerHeader(Header):
    """CONTROLLER_REGISTER_BROKER."""

    cluster_name: str
    broker_name: str
    broker_id: Int64
    broker_address: str
    invoke_time: Int64


class ElectMasterHeader(Header):
    """CONTROLLER_ELECT_MASTER; with `designate_elect`, this broker and no other."""

    cluster_name: str
    broker_name: str
    broker_id: Int64
    invoke_time: Int64
    designate_elect: bool = False


class GetReplicaInfoHeader(Header):
    """CONTROLLER_GET_REPLICA_INFO."""

    broker_name: str


class MasterHeader(Header):
    """Who the master of a name is: in answers, and in NOTIFY_BROKER_ROLE_CHANGED.

    Without a master, id and address are missing.
    """

    master_broker_id: Int64 | None = None
    master_address: str | None = None
    master_epoch: Int32 | None = None
    sync_state_set_epoch: Int32 | None = None


class AlterSyncStateSetHeader(Header):
    """CONTROLLER_ALTER_SYNC_STATE_SET."""

    broker_name: str
    master_broker_id: Int64
    master_epoch: Int32
    invoke_time: Int64


class ControllerHeartbeatHeader(Header):
    """BROKER_HEARTBEAT to a controller."""

    cluster_name: str
    broker_addr: str
    broker_name: str
    broker_id: Int64
    epoch: Int32
    max_offset: Int64
    confirm_offset: Int64
    heartbeat_timeout_mills: Int64
    election_priority: Int32


class ExchangeHaInfoHeader(Header):
    """EXCHANGE_BROKER_HA_INFO, and its answer; without an address it is a question."""

    master_ha_address: str | None = None
    master_flush_offset: Int64 | None = None
    master_address: str | None = None
