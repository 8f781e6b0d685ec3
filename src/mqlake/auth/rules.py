"""What each request of a broker needs. A code without a rule needs `UNKNOWN`.

Every route of a broker and of a name server has a rule (`tests/auth/test_rules.py`).
"""

from __future__ import annotations

from typing import Final

from mqlake.auth import body_needs
from mqlake.auth.needs import (
    CREATE,
    DELETE,
    GET,
    PUB,
    SUB,
    UPDATE,
    Actions,
    InBody,
    OnCluster,
    OnEach,
    OnGroup,
    OnMessage,
    OnTopic,
    Question,
    Rule,
)
from mqlake.auth.resource import ResourceKind
from mqlake.errors import FormatError
from mqlake.formats.message_id import decode_message_id
from mqlake.protocol.codes import RequestCode as Code

_READ, _WRITE = (OnCluster(GET),), (OnCluster(UPDATE),)
UNKNOWN: Final[Rule] = _WRITE
"""What a request needs whose code has no rule."""


def _offset(field: str, question: Question) -> int | None:
    text = question.fields.get(field, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else None


def _offset_field(question: Question) -> int | None:
    return _offset("offset", question)


def _half_message(question: Question) -> int | None:
    return _offset("commitLogOffset", question)


def _message_id(question: Question) -> int | None:
    try:
        return decode_message_id(question.fields.get("msgId", ""))[1]
    except FormatError:
        return None


_CONSUME: Final[Rule] = (OnTopic(SUB, group_field="consumerGroup"), OnGroup(SUB))
_RECEIPT: Final[Rule] = (
    OnTopic(SUB, group_field="consumerGroup", is_receipt=True),
    OnGroup(SUB),
)
_SEND: Final[Rule] = (OnTopic(PUB),)
_SEND_V2: Final[Rule] = (OnTopic(PUB, "b"),)
_LOCK: Final[Rule] = (InBody("group: Sub; each topic: Sub", body_needs.of_locks),)


def _both(actions: Actions, group_field: str = "group") -> Rule:
    return (OnTopic(actions, group_field=group_field), OnGroup(actions, group_field))


_ACCOUNTS: Final[dict[int, Rule]] = {
    Code.AUTH_CREATE_USER: _WRITE,
    Code.AUTH_UPDATE_USER: _WRITE,
    Code.AUTH_DELETE_USER: _WRITE,
    Code.AUTH_GET_USER: _READ,
    Code.AUTH_LIST_USER: _READ,
    Code.AUTH_CREATE_ACL: _WRITE,
    Code.AUTH_UPDATE_ACL: _WRITE,
    Code.AUTH_DELETE_ACL: _WRITE,
    Code.AUTH_GET_ACL: _READ,
    Code.AUTH_LIST_ACL: _READ,
}

BROKER: Final[dict[int, Rule]] = {
    # Producers
    Code.SEND_MESSAGE: _SEND,
    Code.SEND_MESSAGE_V2: _SEND_V2,
    Code.SEND_BATCH_MESSAGE: _SEND_V2,
    Code.SEND_REPLY_MESSAGE: _SEND,
    Code.SEND_REPLY_MESSAGE_V2: _SEND_V2,
    Code.RECALL_MESSAGE: _SEND,
    Code.END_TRANSACTION: (OnMessage(PUB, _half_message),),
    # Consumers
    Code.PULL_MESSAGE: _CONSUME,
    Code.LITE_PULL_MESSAGE: _CONSUME,
    Code.POP_MESSAGE: _CONSUME,
    Code.PEEK_MESSAGE: _CONSUME,
    Code.NOTIFICATION: _CONSUME,
    Code.ACK_MESSAGE: _RECEIPT,
    Code.CHANGE_MESSAGE_INVISIBLETIME: _RECEIPT,
    Code.BATCH_ACK_MESSAGE: (InBody("each group and topic: Sub", body_needs.of_batch_ack),),
    Code.CONSUMER_SEND_MSG_BACK: (
        OnGroup(SUB, "group"),
        OnMessage(SUB, _offset_field, "group"),
    ),
    Code.QUERY_CONSUMER_OFFSET: _both(SUB | GET, "consumerGroup"),
    Code.UPDATE_CONSUMER_OFFSET: _both(SUB | UPDATE, "consumerGroup"),
    Code.GET_CONSUMER_LIST_BY_GROUP: (OnGroup(SUB | GET),),
    Code.LOCK_BATCH_MQ: _LOCK,
    Code.UNLOCK_BATCH_MQ: _LOCK,
    Code.QUERY_ASSIGNMENT: (InBody("group: Sub; topic: Sub", body_needs.of_assignment),),
    Code.GET_MAX_OFFSET: (OnTopic(SUB | GET),),
    Code.GET_MIN_OFFSET: (OnTopic(SUB | GET),),
    Code.SEARCH_OFFSET_BY_TIMESTAMP: (OnTopic(SUB | GET),),
    Code.GET_EARLIEST_MSG_STORETIME: (OnTopic(SUB | GET),),
    Code.QUERY_MESSAGE: (OnTopic(SUB | GET),),
    Code.VIEW_MESSAGE_BY_ID: (OnMessage(SUB | GET, _offset_field),),
    # Clients
    Code.HEART_BEAT: (
        InBody("each consumer group: Sub; each of its topics: Sub", body_needs.of_heartbeat),
    ),
    Code.UNREGISTER_CLIENT: (OnGroup(SUB, is_optional=True),),
    Code.CHECK_CLIENT_CONFIG: (
        InBody("group, if given: Sub; topic, if given: Sub", body_needs.of_check_client),
    ),
    # Topics
    Code.GET_ROUTEINFO_BY_TOPIC: (OnTopic(PUB | SUB | GET),),
    Code.UPDATE_AND_CREATE_TOPIC: (OnTopic(CREATE),),
    Code.UPDATE_AND_CREATE_TOPIC_LIST: (InBody("each topic: Create", body_needs.of_topic_list),),
    Code.UPDATE_AND_CREATE_STATIC_TOPIC: _WRITE,
    Code.DELETE_TOPIC_IN_BROKER: (OnTopic(DELETE),),
    Code.DELETE_TOPIC_IN_BROKER_LIST: (InBody("each topic: Delete", body_needs.of_topic_names),),
    Code.GET_TOPIC_CONFIG: (OnTopic(GET),),
    Code.GET_TOPIC_STATS_INFO: (OnTopic(GET),),
    Code.QUERY_TOPIC_CONSUME_BY_WHO: (OnTopic(GET),),
    Code.GET_ALL_TOPIC_CONFIG: _READ,
    Code.GET_SYSTEM_TOPIC_LIST_FROM_BROKER: _READ,
    # Groups
    Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: (InBody("group: Create", body_needs.of_group),),
    Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST: (
        InBody("each group: Create", body_needs.of_group_list),
    ),
    Code.DELETE_SUBSCRIPTIONGROUP: (OnGroup(DELETE, "groupName"),),
    Code.DELETE_SUBSCRIPTION_GROUP_LIST: (InBody("each group: Delete", body_needs.of_group_names),),
    Code.GET_SUBSCRIPTIONGROUP_CONFIG: (OnGroup(GET, "group"),),
    Code.GET_ALL_SUBSCRIPTIONGROUP_CONFIG: _READ,
    Code.UPDATE_AND_GET_GROUP_FORBIDDEN: _both(UPDATE),
    Code.QUERY_TOPICS_BY_CONSUMER: (OnGroup(GET, "group"),),
    Code.QUERY_SUBSCRIPTION_BY_CONSUMER: _both(GET),
    Code.QUERY_CONSUME_TIME_SPAN: _both(GET),
    Code.GET_CONSUME_STATS: (
        OnGroup(GET),
        OnEach(ResourceKind.TOPIC, GET, "topic", ";"),
        OnEach(ResourceKind.TOPIC, GET, "topicList", ";"),
    ),
    Code.SET_MESSAGE_REQUEST_MODE: (
        InBody("group: Update; topic: Update", body_needs.of_request_mode),
    ),
    Code.POLLING_INFO: _both(GET, "consumerGroup"),
    Code.INVOKE_BROKER_TO_RESET_OFFSET: _both(UPDATE),
    Code.CLONE_GROUP_OFFSET: (
        OnGroup(GET, "srcGroup"),
        OnGroup(UPDATE, "destGroup"),
        OnTopic(UPDATE, is_optional=True),
    ),
    Code.QUERY_CORRECTION_OFFSET: (
        OnTopic(GET),
        OnGroup(GET, "compareGroup"),
        OnEach(ResourceKind.GROUP, GET, "filterGroups", ","),
    ),
    Code.QUERY_CONSUME_QUEUE: (OnTopic(GET), OnGroup(GET, is_optional=True)),
    # Connected clients
    Code.GET_CONSUMER_CONNECTION_LIST: (OnGroup(GET),),
    Code.GET_CONSUMER_RUNNING_INFO: (OnGroup(GET),),
    Code.INVOKE_BROKER_TO_GET_CONSUMER_STATUS: _both(GET),
    Code.CONSUME_MESSAGE_DIRECTLY: (
        OnGroup(SUB),
        OnMessage(SUB, _message_id, "consumerGroup"),
    ),
    Code.GET_PRODUCER_CONNECTION_LIST: _READ,
    Code.GET_ALL_PRODUCER_INFO: _READ,
    # The broker
    Code.GET_BROKER_CONFIG: _READ,
    Code.UPDATE_BROKER_CONFIG: _WRITE,
    Code.GET_BROKER_RUNTIME_INFO: _READ,
    Code.VIEW_BROKER_STATS_DATA: _READ,
    Code.GET_BROKER_CONSUME_STATS: _READ,
    Code.UPDATE_COLD_DATA_FLOW_CTR_CONFIG: _WRITE,
    Code.REMOVE_COLD_DATA_FLOW_CTR_CONFIG: _WRITE,
    Code.GET_COLD_DATA_FLOW_CTR_INFO: _READ,
    Code.SET_COMMITLOG_READ_MODE: _WRITE,
    Code.DELETE_EXPIRED_COMMITLOG: _WRITE,
    Code.CLEAN_EXPIRED_CONSUMEQUEUE: _WRITE,
    Code.CLEAN_UNUSED_TOPIC: _WRITE,
    Code.RESET_MASTER_FLUSH_OFFSET: _WRITE,
    Code.CHECK_ROCKSDB_CQ_WRITE_PROGRESS: _READ,
    Code.EXPORT_ROCKSDB_CONFIG_TO_JSON: _READ,
    Code.SWITCH_TIMER_ENGINE: _WRITE,
    Code.RESUME_CHECK_HALF_MESSAGE: _WRITE,
    # ACL 1.0
    Code.UPDATE_AND_CREATE_ACL_CONFIG: _WRITE,
    Code.DELETE_ACL_CONFIG: _WRITE,
    Code.GET_BROKER_CLUSTER_ACL_INFO: _READ,
    Code.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG: _WRITE,
    # Other brokers and controllers
    Code.GET_ALL_CONSUMER_OFFSET: _READ,
    Code.GET_ALL_DELAY_OFFSET: _READ,
    Code.GET_ALL_MESSAGE_REQUEST_MODE: _READ,
    Code.GET_TIMER_CHECK_POINT: _READ,
    Code.GET_TIMER_METRICS: _READ,
    Code.GET_BROKER_HA_STATUS: _READ,
    Code.GET_BROKER_EPOCH_CACHE: _READ,
    Code.NOTIFY_BROKER_ROLE_CHANGED: _WRITE,
    Code.EXCHANGE_BROKER_HA_INFO: _WRITE,
    Code.NOTIFY_MIN_BROKER_ID_CHANGE: _WRITE,
    # Lite topics
    Code.POP_LITE_MESSAGE: _CONSUME,
    Code.LITE_SUBSCRIPTION_CTL: (InBody("each group and topic: Sub", body_needs.of_lite_changes),),
    Code.ACK_LITE_MESSAGE: _WRITE,
    Code.NOTIFY_UNSUBSCRIBE_LITE: _WRITE,
    Code.GET_BROKER_LITE_INFO: _READ,
    Code.GET_PARENT_TOPIC_INFO: _READ,
    Code.GET_LITE_TOPIC_INFO: _READ,
    Code.GET_LITE_CLIENT_INFO: _READ,
    Code.GET_LITE_GROUP_INFO: _READ,
    Code.TRIGGER_LITE_DISPATCH: _WRITE,
    **_ACCOUNTS,
}

PROXY: Final[dict[int, Rule]] = {**BROKER, Code.END_TRANSACTION: _SEND}
"""A proxy cannot read the half message; it knows with whose calls it was sent."""

NAME_SERVER: Final[dict[int, Rule]] = {
    Code.REGISTER_BROKER: _WRITE,
    Code.UNREGISTER_BROKER: _WRITE,
    Code.BROKER_HEARTBEAT: _WRITE,
    Code.QUERY_DATA_VERSION: _READ,
    Code.GET_BROKER_CLUSTER_INFO: _READ,
    Code.GET_BROKER_MEMBER_GROUP: _READ,
    Code.WIPE_WRITE_PERM_OF_BROKER: _WRITE,
    Code.ADD_WRITE_PERM_OF_BROKER: _WRITE,
    Code.GET_ROUTEINFO_BY_TOPIC: (OnTopic(PUB | SUB | GET),),
    Code.GET_ALL_TOPIC_LIST_FROM_NAMESERVER: _READ,
    Code.GET_TOPICS_BY_CLUSTER: _READ,
    Code.GET_SYSTEM_TOPIC_LIST_FROM_NS: _READ,
    Code.GET_UNIT_TOPIC_LIST: _READ,
    Code.GET_HAS_UNIT_SUB_TOPIC_LIST: _READ,
    Code.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST: _READ,
    Code.REGISTER_TOPIC_IN_NAMESRV: _WRITE,
    Code.DELETE_TOPIC_IN_NAMESRV: _WRITE,
    Code.PUT_KV_CONFIG: _WRITE,
    Code.GET_KV_CONFIG: _READ,
    Code.DELETE_KV_CONFIG: _WRITE,
    Code.GET_KVLIST_BY_NAMESPACE: _READ,
    Code.GET_NAMESRV_CONFIG: _READ,
    Code.UPDATE_NAMESRV_CONFIG: _WRITE,
    **_ACCOUNTS,
}
"""What the requests of a name server need. It serves all clusters, so its cluster is `*`: only
entries for `Cluster:*` and for `*` cover it."""
ALL_CLUSTERS: Final = "*"
"""The name of a name server's cluster: no literal name of an entry is this one."""
