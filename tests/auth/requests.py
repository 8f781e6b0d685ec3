"""One request of each code that a broker serves, and what it needs, written out by hand.

T is the topic t, G the group g, R the retry topic of g, C the cluster.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

from mqlake.protocol.codes import RequestCode as Code

OFFSET, HALF = 100, 200
"""Physical offsets of messages of the topic t; the second is a half message."""
_ID = "7F00000100002A9F" + f"{OFFSET:016X}"


class Example(NamedTuple):
    """A request, and its needs: such as "Topic:t Sub|Get"."""

    fields: Mapping[str, str]
    body: object
    needs: tuple[str, ...]


def of(*needs: str, body: object = None, **fields: str) -> Example:
    return Example(fields, body, needs)


READ, WRITE = of("Cluster:main Get"), of("Cluster:main Update")
_CONSUME = of("Topic:t Sub", "Group:g Sub", topic="t", consumerGroup="g")
_BOTH = {"topic": "t", "group": "g"}
_QUEUE = of("Topic:t Sub|Get", topic="t", queueId="0")

EXAMPLES: dict[Code, Example] = {
    Code.SEND_MESSAGE: of("Topic:t Pub", topic="t", producerGroup="p"),
    Code.SEND_MESSAGE_V2: of("Topic:t Pub", a="p", b="t", c="TBW102"),
    Code.SEND_BATCH_MESSAGE: of("Topic:t Pub", a="p", b="t"),
    Code.SEND_REPLY_MESSAGE: of("Topic:t Pub", topic="t"),
    Code.SEND_REPLY_MESSAGE_V2: of("Topic:t Pub", b="t"),
    Code.RECALL_MESSAGE: of("Topic:t Pub", topic="t", recallHandle="x"),
    Code.END_TRANSACTION: of("Topic:t Pub", commitLogOffset=str(HALF), topic="other"),
    Code.PULL_MESSAGE: _CONSUME,
    Code.LITE_PULL_MESSAGE: _CONSUME,
    Code.POP_MESSAGE: _CONSUME,
    Code.PEEK_MESSAGE: _CONSUME,
    Code.NOTIFICATION: _CONSUME,
    Code.ACK_MESSAGE: _CONSUME,
    Code.CHANGE_MESSAGE_INVISIBLETIME: _CONSUME,
    Code.POP_LITE_MESSAGE: _CONSUME,
    Code.BATCH_ACK_MESSAGE: of(
        "Group:g Sub",
        "Topic:t Sub",
        "Group:h Sub",
        "Topic:u Sub",
        body={
            "acks": [
                {"c": "g", "t": "t", "so": 0, "q": 0, "rq": 0, "pt": 0, "it": 0, "r": "0"},
                {"c": "h", "t": "u", "so": 0, "q": 0, "rq": 0, "pt": 0, "it": 0, "r": "1"},
            ]
        },
    ),
    Code.LITE_SUBSCRIPTION_CTL: of(
        "Group:g Sub",
        "Topic:t Sub",
        body={"subscriptionSet": [{"group": "g", "topic": "t", "action": "COMPLETE_ADD"}]},
    ),
    Code.CONSUMER_SEND_MSG_BACK: of("Group:g Sub", "Topic:t Sub", group="g", offset=str(OFFSET)),
    Code.QUERY_CONSUMER_OFFSET: of(
        "Topic:t Sub|Get", "Group:g Sub|Get", topic="t", consumerGroup="g"
    ),
    Code.UPDATE_CONSUMER_OFFSET: of(
        "Topic:t Sub|Update", "Group:g Sub|Update", topic="t", consumerGroup="g"
    ),
    Code.GET_CONSUMER_LIST_BY_GROUP: of("Group:g Sub|Get", consumerGroup="g"),
    Code.LOCK_BATCH_MQ: of(
        "Group:g Sub",
        "Topic:t Sub",
        "Topic:u Sub",
        body={
            "consumerGroup": "g",
            "mqSet": [
                {"topic": "t", "brokerName": "a", "queueId": 0},
                {"topic": "u", "brokerName": "a", "queueId": 0},
                {"topic": "%RETRY%g", "brokerName": "a", "queueId": 0},
            ],
        },
    ),
    Code.QUERY_ASSIGNMENT: of(
        "Group:g Sub",
        "Topic:t Sub",
        body={"topic": "t", "consumerGroup": "g", "clientId": "c"},
    ),
    Code.GET_MAX_OFFSET: _QUEUE,
    Code.GET_MIN_OFFSET: _QUEUE,
    Code.SEARCH_OFFSET_BY_TIMESTAMP: _QUEUE,
    Code.GET_EARLIEST_MSG_STORETIME: _QUEUE,
    Code.QUERY_MESSAGE: of("Topic:t Sub|Get", topic="t", key="k"),
    Code.VIEW_MESSAGE_BY_ID: of("Topic:t Sub|Get", topic="other", offset=str(OFFSET)),
    Code.HEART_BEAT: of(
        "Group:g Sub",
        "Topic:t Sub",
        "Topic:u Sub",
        body={
            "clientID": "c",
            "producerDataSet": [{"groupName": "p"}],
            "consumerDataSet": [
                {
                    "groupName": "g",
                    "subscriptionDataSet": [
                        {"topic": "t"},
                        {"topic": "u"},
                        {"topic": "%RETRY%g"},
                    ],
                }
            ],
        },
    ),
    Code.UNREGISTER_CLIENT: of("Group:g Sub", consumerGroup="g", clientID="c"),
    Code.CHECK_CLIENT_CONFIG: of(
        "Group:g Sub", "Topic:t Sub", body={"group": "g", "subscriptionData": {"topic": "t"}}
    ),
    Code.UPDATE_AND_CREATE_TOPIC: of("Topic:t Create", topic="t"),
    Code.UPDATE_AND_CREATE_TOPIC_LIST: of(
        "Topic:t Create",
        "Topic:u Create",
        body={"topicConfigList": [{"topicName": "t"}, {"topicName": "u"}]},
    ),
    Code.DELETE_TOPIC_IN_BROKER: of("Topic:t Delete", topic="t"),
    Code.DELETE_TOPIC_IN_BROKER_LIST: of(
        "Topic:t Delete", "Topic:u Delete", body={"topicList": ["t", "u"]}
    ),
    Code.GET_ROUTEINFO_BY_TOPIC: of("Topic:t Pub|Sub|Get", topic="t"),
    Code.GET_TOPIC_CONFIG: of("Topic:t Get", topic="t"),
    Code.GET_TOPIC_STATS_INFO: of("Topic:t Get", topic="t"),
    Code.QUERY_TOPIC_CONSUME_BY_WHO: of("Topic:t Get", topic="t"),
    Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: of("Group:g Create", body={"groupName": "g"}),
    Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST: of(
        "Group:g Create",
        "Group:h Create",
        body={"groupConfigList": [{"groupName": "g"}, {"groupName": "h"}]},
    ),
    Code.DELETE_SUBSCRIPTIONGROUP: of("Group:g Delete", groupName="g"),
    Code.DELETE_SUBSCRIPTION_GROUP_LIST: of(
        "Group:g Delete", "Group:h Delete", body={"groupNameList": ["g", "h"]}
    ),
    Code.GET_SUBSCRIPTIONGROUP_CONFIG: of("Group:g Get", group="g"),
    Code.UPDATE_AND_GET_GROUP_FORBIDDEN: of("Topic:t Update", "Group:g Update", **_BOTH),
    Code.QUERY_TOPICS_BY_CONSUMER: of("Group:g Get", group="g"),
    Code.QUERY_SUBSCRIPTION_BY_CONSUMER: of("Topic:t Get", "Group:g Get", **_BOTH),
    Code.QUERY_CONSUME_TIME_SPAN: of("Topic:t Get", "Group:g Get", **_BOTH),
    Code.GET_CONSUME_STATS: of(
        "Group:g Get",
        "Topic:t Get",
        "Topic:u Get",
        "Topic:v Get",
        consumerGroup="g",
        topic="t",
        topicList="u; v;",
    ),
    Code.SET_MESSAGE_REQUEST_MODE: of(
        "Group:g Update", "Topic:t Update", body={"topic": "t", "consumerGroup": "g"}
    ),
    Code.POLLING_INFO: of("Topic:t Get", "Group:g Get", topic="t", consumerGroup="g"),
    Code.INVOKE_BROKER_TO_RESET_OFFSET: of("Topic:t Update", "Group:g Update", **_BOTH),
    Code.CLONE_GROUP_OFFSET: of(
        "Group:h Get", "Group:g Update", "Topic:t Update", srcGroup="h", destGroup="g", topic="t"
    ),
    Code.QUERY_CORRECTION_OFFSET: of(
        "Topic:t Get",
        "Group:g Get",
        "Group:h Get",
        topic="t",
        compareGroup="g",
        filterGroups="h",
    ),
    Code.QUERY_CONSUME_QUEUE: of("Topic:t Get", "Group:g Get", topic="t", consumerGroup="g"),
    Code.GET_CONSUMER_CONNECTION_LIST: of("Group:g Get", consumerGroup="g"),
    Code.GET_CONSUMER_RUNNING_INFO: of("Group:g Get", consumerGroup="g", clientId="c"),
    Code.INVOKE_BROKER_TO_GET_CONSUMER_STATUS: of("Topic:t Get", "Group:g Get", **_BOTH),
    Code.CONSUME_MESSAGE_DIRECTLY: of(
        "Group:g Sub", "Topic:t Sub", consumerGroup="g", clientId="c", msgId=_ID, topic="other"
    ),
    **dict.fromkeys(
        (
            Code.GET_ALL_TOPIC_CONFIG,
            Code.GET_SYSTEM_TOPIC_LIST_FROM_BROKER,
            Code.GET_ALL_SUBSCRIPTIONGROUP_CONFIG,
            Code.GET_PRODUCER_CONNECTION_LIST,
            Code.GET_ALL_PRODUCER_INFO,
            Code.GET_BROKER_CONFIG,
            Code.GET_BROKER_CLUSTER_ACL_INFO,
            Code.GET_BROKER_RUNTIME_INFO,
            Code.VIEW_BROKER_STATS_DATA,
            Code.GET_BROKER_CONSUME_STATS,
            Code.GET_COLD_DATA_FLOW_CTR_INFO,
            Code.CHECK_ROCKSDB_CQ_WRITE_PROGRESS,
            Code.EXPORT_ROCKSDB_CONFIG_TO_JSON,
            Code.GET_ALL_CONSUMER_OFFSET,
            Code.GET_ALL_DELAY_OFFSET,
            Code.GET_ALL_MESSAGE_REQUEST_MODE,
            Code.GET_TIMER_CHECK_POINT,
            Code.GET_TIMER_METRICS,
            Code.GET_BROKER_HA_STATUS,
            Code.GET_BROKER_EPOCH_CACHE,
            Code.GET_BROKER_LITE_INFO,
            Code.GET_PARENT_TOPIC_INFO,
            Code.GET_LITE_TOPIC_INFO,
            Code.GET_LITE_CLIENT_INFO,
            Code.GET_LITE_GROUP_INFO,
            Code.AUTH_GET_USER,
            Code.AUTH_LIST_USER,
            Code.AUTH_GET_ACL,
            Code.AUTH_LIST_ACL,
        ),
        READ,
    ),
    **dict.fromkeys(
        (
            Code.UPDATE_AND_CREATE_STATIC_TOPIC,
            Code.UPDATE_BROKER_CONFIG,
            Code.UPDATE_AND_CREATE_ACL_CONFIG,
            Code.DELETE_ACL_CONFIG,
            Code.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG,
            Code.UPDATE_COLD_DATA_FLOW_CTR_CONFIG,
            Code.REMOVE_COLD_DATA_FLOW_CTR_CONFIG,
            Code.SET_COMMITLOG_READ_MODE,
            Code.DELETE_EXPIRED_COMMITLOG,
            Code.CLEAN_EXPIRED_CONSUMEQUEUE,
            Code.CLEAN_UNUSED_TOPIC,
            Code.RESET_MASTER_FLUSH_OFFSET,
            Code.SWITCH_TIMER_ENGINE,
            Code.RESUME_CHECK_HALF_MESSAGE,
            Code.NOTIFY_BROKER_ROLE_CHANGED,
            Code.EXCHANGE_BROKER_HA_INFO,
            Code.NOTIFY_MIN_BROKER_ID_CHANGE,
            Code.ACK_LITE_MESSAGE,
            Code.NOTIFY_UNSUBSCRIBE_LITE,
            Code.TRIGGER_LITE_DISPATCH,
            Code.AUTH_CREATE_USER,
            Code.AUTH_UPDATE_USER,
            Code.AUTH_DELETE_USER,
            Code.AUTH_CREATE_ACL,
            Code.AUTH_UPDATE_ACL,
            Code.AUTH_DELETE_ACL,
        ),
        WRITE,
    ),
}
EXAMPLES[Code.UNLOCK_BATCH_MQ] = EXAMPLES[Code.LOCK_BATCH_MQ]


def body_of(example: Example) -> bytes:
    return b"" if example.body is None else json.dumps(example.body).encode()
