"""For each request code of broker and name server: requests with inputs at the limits.

A request has all fields that any header has; what differs is stated here.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from mqlake.formats.config.subscription_group import SubscriptionGroup
from mqlake.formats.config.topics import Topic
from mqlake.formats.message_batch import encode_batch
from mqlake.formats.record import HEAD_SIZES
from mqlake.protocol.bodies.groups import GroupConfigs, GroupNames, TopicNames
from mqlake.protocol.bodies.groups import TopicConfigList as TopicList
from mqlake.protocol.bodies.heartbeat import (
    CheckClient,
    ConsumerData,
    Heartbeat,
    ProducerData,
    Subscription,
)
from mqlake.protocol.bodies.locks import LockQueues
from mqlake.protocol.bodies.message_queue import MessageQueue
from mqlake.protocol.bodies.pop import AssignmentQuery, BatchAck, BatchAcks, RequestMode
from mqlake.protocol.bodies.register import RegisterBody, TopicConfigs
from mqlake.protocol.body import encode_body
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import Command, request
from mqlake.protocol.header import to_fields
from mqlake.protocol.headers.pull import HAS_SUBSCRIPTION
from tests.broker.running import to
from tests.budget.full_broker import BIG, CROWD, LONGEST, QUEUES

_LAST = str((1 << 63) - 1)
_BODY = 2_000_000
"""Bytes of an administrative request's body; the limit is 2 MiB."""

FIELDS = to_fields(to(BIG)) | {
    "topic": BIG,
    "group": "g0",
    "groupName": "g0",
    "consumerGroup": "g0",
    "producerGroup": CROWD,
    "srcGroup": "g1",
    "destGroup": "g3",
    "compareGroup": "g0",
    "filterGroups": ",".join(f"g{number}" for number in range(1000)),
    "clientID": "crowd-1",
    "clientId": "nobody",
    "clientAddr": "",
    "queueId": "0",
    "queueOffset": "0",
    "offset": "0",
    "commitOffset": "0",
    "timestamp": "0",
    "boundaryType": "LOWER",
    "maxMsgNums": "32",
    "sysFlag": str(HAS_SUBSCRIPTION),
    "suspendTimeoutMillis": "0",
    "subscription": "*",
    "subVersion": "1",
    "invisibleTime": "60000",
    "pollTime": "0",
    "initMode": "0",
    "extraInfo": "0 1700000000000 60000 0 0 broker-a 0 0",
    "key": "one",
    "maxNum": "64",
    "beginTimestamp": "0",
    "endTimestamp": _LAST,
    "index": "0",
    "count": str(2**31 - 1),
    "statsName": "TOPIC_PUT_NUMS",
    "statsKey": BIG,
    "configType": "topics;subscriptionGroups;consumerOffsets",
    "readQueueNums": str(QUEUES),
    "writeQueueNums": str(QUEUES),
    "perm": "6",
    "topicFilterType": "SINGLE_TAG",
    "defaultTopic": "TBW102",
    "defaultTopicQueueNums": "4",
    "bornTimestamp": "1700000000000",
    "flag": "0",
    "bornHost": "127.0.0.1:1",
    "storeHost": "127.0.0.1:1",
    "storeTimestamp": "1700000000000",
    "delayLevel": "1",
    "originMsgId": "x",
    "tranStateTableOffset": "0",
    "commitLogOffset": "0",
    "commitOrRollback": "8",
    "msgId": "7F00000100002A9F0000000000000000",
    "recallHandle": "x",
    "mode": "0",
    "brokerName": "broker-0",
    "brokerAddr": "10.0.0.0:1",
    "clusterName": "cluster",
    "cluster": "cluster",
    "brokerId": "0",
    "haServerAddr": "",
    "namespace": "ORDER_TOPIC_CONFIG",
    "value": "v" * 1000,
}


class Ask(NamedTuple):
    """A request.

    Attributes:
        what: a word for the report; "" for the plain one.
        fields: header fields that differ from `FIELDS`.
        body: returns the body.
    """

    what: str = ""
    fields: Mapping[str, str] = MappingProxyType({})
    body: Callable[[], bytes] = bytes

    def command(self, code: int) -> Command:
        """Return the request."""
        return request(code, {**FIELDS, **self.fields}, self.body())


def _many(make: Callable[[int], Any], size: int, wrap: Callable[[list[Any]], Any]) -> bytes:
    """Return a body of about so many bytes: as many members as fit."""
    one = len(encode_body(make(10_000))) + 1
    return encode_body(wrap([make(number) for number in range(size // one)]))


def _beat(groups: int) -> bytes:
    consumers = [
        ConsumerData(f"g{n}", subscription_data_set=[Subscription(f"T{n}")]) for n in range(groups)
    ]
    producers = [ProducerData(f"p{n}") for n in range(groups)]
    return encode_body(Heartbeat("beating", producers, consumers))


def _subscriptions() -> bytes:
    them = [Subscription(f"T{n}", "a || b") for n in range(1000)]
    consumers = [ConsumerData("g5", subscription_data_set=them)]
    return encode_body(Heartbeat("subscribing", [], consumers))


def _locks(start: int) -> bytes:
    queues = [MessageQueue(BIG, "broker-a", n % QUEUES) for n in range(start, start + QUEUES)]
    return encode_body(LockQueues("g0", "client", mq_set=queues))


def _acks() -> bytes:
    def make(number: int) -> BatchAck:
        return BatchAck("g0", BIG, 0, number % QUEUES, 0, 1_700_000_000_000, 60_000, "0", b"\x01")

    return _many(make, _BODY // 16, lambda acks: BatchAcks("broker-a", acks))


def _batch(size: int) -> bytes:
    """Return the longest batch of messages with bodies of this size."""
    one = encode_batch([(0, bytes(size), b"")])
    most = LONGEST // max(len(one), HEAD_SIZES[0] + len(BIG) + 2 + size)
    return one * most


def registration(topics: Iterable[str], number: int = 0) -> Ask:
    """Return the registration of a broker at the name server."""
    body = RegisterBody(TopicConfigs({name: Topic(name, 4, 4) for name in topics})).encode()
    return Ask(
        f"{number}",
        {
            "bodyCrc32": str(zlib.crc32(body) & 0x7FFFFFFF),
            "compressed": "false",
            "brokerName": f"broker-{number}",
        },
        lambda: body,
    )


_PLAIN = (Ask(),)
_C = RequestCode
_BATCH = {"batch": "true", "m": "true"}
_SETTINGS = b"maxMsgsNumBatch=64\n"

BROKER: dict[RequestCode, tuple[Ask, ...]] = {
    _C.SEND_MESSAGE: (Ask(body=lambda: bytes(LONGEST)),),
    _C.SEND_MESSAGE_V2: (
        Ask(body=lambda: bytes(LONGEST)),
        Ask("keys", {"i": "KEYS\x01" + " ".join(["Aa"] * 10_000) + "\x02"}),
    ),
    _C.SEND_BATCH_MESSAGE: (
        Ask("few", _BATCH, lambda: _batch(LONGEST // 4 - 100)),
        Ask("many", _BATCH, lambda: _batch(1)),
    ),
    _C.CONSUMER_SEND_MSG_BACK: _PLAIN,
    _C.HEART_BEAT: (Ask("groups", body=lambda: _beat(500)), Ask("topics", body=_subscriptions)),
    _C.UNREGISTER_CLIENT: _PLAIN,
    _C.GET_CONSUMER_LIST_BY_GROUP: (Ask(fields={"consumerGroup": CROWD}),),
    _C.CHECK_CLIENT_CONFIG: (
        Ask(body=lambda: encode_body(CheckClient("c", "g0", Subscription(BIG, "a" * 4000)))),
    ),
    _C.LOCK_BATCH_MQ: (Ask(body=lambda: _locks(0)),),
    _C.UNLOCK_BATCH_MQ: (Ask(body=lambda: _locks(0)),),
    _C.QUERY_CONSUMER_OFFSET: _PLAIN,
    _C.UPDATE_CONSUMER_OFFSET: _PLAIN,
    _C.GET_MAX_OFFSET: _PLAIN,
    _C.GET_MIN_OFFSET: _PLAIN,
    _C.SEARCH_OFFSET_BY_TIMESTAMP: _PLAIN,
    _C.GET_EARLIEST_MSG_STORETIME: _PLAIN,
    _C.PULL_MESSAGE: (
        Ask(),
        Ask("long", {"topic": "T0", "queueOffset": "0"}),
        Ask("tags", {"topic": "T0", "queueOffset": "2", "subscription": "none"}),
    ),
    _C.LITE_PULL_MESSAGE: _PLAIN,
    _C.QUERY_MESSAGE: (
        Ask("equal keys", {"topic": "T0", "key": "BB"}),
        Ask("many", {"topic": "T0", "maxNum": "64"}),
        Ask("never", {"topic": "T0", "endTimestamp": "1"}),
        Ask("long", {"topic": "T0", "key": "long"}),
        Ask("tags", {"topic": "T0", "key": "none", "indexType": "T"}),
    ),
    _C.VIEW_MESSAGE_BY_ID: _PLAIN,
    _C.END_TRANSACTION: _PLAIN,
    _C.RESUME_CHECK_HALF_MESSAGE: _PLAIN,
    _C.RECALL_MESSAGE: _PLAIN,
    _C.SEND_REPLY_MESSAGE: (Ask(body=lambda: bytes(LONGEST)),),
    _C.SEND_REPLY_MESSAGE_V2: (Ask(body=lambda: bytes(LONGEST)),),
    _C.POP_MESSAGE: (Ask(), Ask("all queues", {"queueId": "-1"}), Ask("order", {"order": "true"})),
    _C.PEEK_MESSAGE: (Ask(), Ask("all queues", {"queueId": "-1"})),
    _C.NOTIFICATION: (Ask("all queues", {"queueId": "-1"}),),
    _C.POLLING_INFO: _PLAIN,
    _C.ACK_MESSAGE: _PLAIN,
    _C.BATCH_ACK_MESSAGE: (Ask(body=_acks),),
    _C.CHANGE_MESSAGE_INVISIBLETIME: _PLAIN,
    _C.QUERY_ASSIGNMENT: (
        Ask(body=lambda: encode_body(AssignmentQuery(BIG, "g0", "many-0"))),
        Ask("crowd", body=lambda: encode_body(AssignmentQuery(BIG, CROWD, "crowd-1"))),
    ),
    _C.SET_MESSAGE_REQUEST_MODE: (Ask(body=lambda: encode_body(RequestMode(BIG, "g0", "POP"))),),
    _C.GET_ALL_MESSAGE_REQUEST_MODE: _PLAIN,
    _C.POP_LITE_MESSAGE: _PLAIN,
    _C.LITE_SUBSCRIPTION_CTL: _PLAIN,
    _C.ACK_LITE_MESSAGE: _PLAIN,
    _C.NOTIFY_UNSUBSCRIBE_LITE: _PLAIN,
    _C.GET_BROKER_LITE_INFO: _PLAIN,
    _C.GET_PARENT_TOPIC_INFO: _PLAIN,
    _C.GET_LITE_TOPIC_INFO: _PLAIN,
    _C.GET_LITE_CLIENT_INFO: _PLAIN,
    _C.GET_LITE_GROUP_INFO: _PLAIN,
    _C.TRIGGER_LITE_DISPATCH: _PLAIN,
    _C.UPDATE_AND_CREATE_STATIC_TOPIC: _PLAIN,
    _C.GET_ALL_CONSUMER_OFFSET: _PLAIN,
    _C.GET_ALL_DELAY_OFFSET: _PLAIN,
    _C.GET_TIMER_CHECK_POINT: _PLAIN,
    _C.GET_TIMER_METRICS: _PLAIN,
    _C.GET_BROKER_HA_STATUS: _PLAIN,
    _C.NOTIFY_BROKER_ROLE_CHANGED: _PLAIN,
    _C.GET_BROKER_EPOCH_CACHE: _PLAIN,
    _C.EXCHANGE_BROKER_HA_INFO: _PLAIN,
    _C.NOTIFY_MIN_BROKER_ID_CHANGE: _PLAIN,
    _C.UPDATE_AND_CREATE_TOPIC: (Ask(), Ask("new", {"topic": "New"})),
    _C.UPDATE_AND_CREATE_TOPIC_LIST: (
        Ask(body=lambda: _many(lambda n: Topic(f"N{n}", 4, 4), _BODY, TopicList)),
    ),
    _C.GET_TOPIC_CONFIG: _PLAIN,
    _C.GET_ALL_TOPIC_CONFIG: (Ask(), Ask("page", {"topicSeq": "0", "maxTopicNum": "2000"})),
    _C.GET_TOPIC_STATS_INFO: _PLAIN,
    _C.GET_SYSTEM_TOPIC_LIST_FROM_BROKER: _PLAIN,
    _C.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: (
        Ask(body=lambda: encode_body(SubscriptionGroup("g0", retry_queue_nums=4096))),
    ),
    _C.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST: (
        Ask(body=lambda: _many(lambda n: SubscriptionGroup(f"n{n}"), _BODY, GroupConfigs)),
    ),
    _C.UPDATE_AND_GET_GROUP_FORBIDDEN: (Ask(), Ask("set", {"readable": "false"})),
    _C.GET_SUBSCRIPTIONGROUP_CONFIG: _PLAIN,
    _C.GET_ALL_SUBSCRIPTIONGROUP_CONFIG: (Ask(), Ask("page", {"groupSeq": "0"})),
    _C.GET_CONSUME_STATS: (Ask(), Ask("all topics", {"consumerGroup": "g1", "topic": ""})),
    _C.GET_BROKER_CONSUME_STATS: _PLAIN,
    _C.QUERY_CONSUME_TIME_SPAN: _PLAIN,
    _C.QUERY_TOPIC_CONSUME_BY_WHO: _PLAIN,
    _C.QUERY_TOPICS_BY_CONSUMER: (Ask(fields={"group": "g1"}),),
    _C.QUERY_SUBSCRIPTION_BY_CONSUMER: _PLAIN,
    _C.INVOKE_BROKER_TO_RESET_OFFSET: (
        Ask(fields={"isForce": "true", "offset": "-1", "queueId": "-1"}),
    ),
    _C.CLONE_GROUP_OFFSET: (Ask(), Ask("all topics", {"topic": ""})),
    _C.QUERY_CORRECTION_OFFSET: _PLAIN,
    _C.GET_CONSUMER_CONNECTION_LIST: (Ask(fields={"consumerGroup": CROWD}),),
    _C.GET_PRODUCER_CONNECTION_LIST: _PLAIN,
    _C.GET_ALL_PRODUCER_INFO: _PLAIN,
    _C.GET_CONSUMER_RUNNING_INFO: _PLAIN,
    _C.CONSUME_MESSAGE_DIRECTLY: _PLAIN,
    _C.INVOKE_BROKER_TO_GET_CONSUMER_STATUS: _PLAIN,
    _C.QUERY_CONSUME_QUEUE: (Ask(), Ask("many", {"topic": "T0"})),
    _C.GET_BROKER_CONFIG: _PLAIN,
    _C.UPDATE_BROKER_CONFIG: (Ask(body=lambda: _SETTINGS),),
    _C.UPDATE_COLD_DATA_FLOW_CTR_CONFIG: (Ask(body=lambda: b"g0=1000\n"),),
    _C.REMOVE_COLD_DATA_FLOW_CTR_CONFIG: (Ask(body=lambda: b"g0"),),
    _C.GET_COLD_DATA_FLOW_CTR_INFO: _PLAIN,
    _C.SET_COMMITLOG_READ_MODE: _PLAIN,
    _C.GET_BROKER_RUNTIME_INFO: _PLAIN,
    _C.VIEW_BROKER_STATS_DATA: _PLAIN,
    _C.DELETE_EXPIRED_COMMITLOG: _PLAIN,
    _C.RESET_MASTER_FLUSH_OFFSET: _PLAIN,
    _C.CHECK_ROCKSDB_CQ_WRITE_PROGRESS: _PLAIN,
    _C.EXPORT_ROCKSDB_CONFIG_TO_JSON: _PLAIN,
    _C.SWITCH_TIMER_ENGINE: _PLAIN,
    # Refused: this broker has no users, whose signatures would be needed for all requests.
    _C.AUTH_CREATE_USER: _PLAIN,
    _C.UPDATE_AND_CREATE_ACL_CONFIG: _PLAIN,
    _C.DELETE_ACL_CONFIG: _PLAIN,
    _C.GET_BROKER_CLUSTER_ACL_INFO: _PLAIN,
    _C.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG: _PLAIN,
    _C.AUTH_UPDATE_USER: _PLAIN,
    _C.AUTH_DELETE_USER: _PLAIN,
    _C.AUTH_GET_USER: _PLAIN,
    _C.AUTH_LIST_USER: _PLAIN,
    _C.AUTH_CREATE_ACL: _PLAIN,
    _C.AUTH_UPDATE_ACL: _PLAIN,
    _C.AUTH_DELETE_ACL: _PLAIN,
    _C.AUTH_GET_ACL: _PLAIN,
    _C.AUTH_LIST_ACL: _PLAIN,
    _C.GET_ROUTEINFO_BY_TOPIC: (Ask(fields={"topic": BIG}),),
    # From here on, they remove what others list.
    _C.DELETE_SUBSCRIPTIONGROUP: (Ask(fields={"groupName": "g1", "cleanOffset": "true"}),),
    _C.DELETE_SUBSCRIPTION_GROUP_LIST: (
        Ask(body=lambda: encode_body(GroupNames([f"g{n}" for n in range(100, 200)], True))),
    ),
    _C.DELETE_TOPIC_IN_BROKER: (Ask(fields={"topic": "T1"}), Ask("big")),
    _C.DELETE_TOPIC_IN_BROKER_LIST: (
        Ask(body=lambda: encode_body(TopicNames([f"T{n}" for n in range(100, 130)]))),
    ),
    _C.CLEAN_EXPIRED_CONSUMEQUEUE: _PLAIN,
    _C.CLEAN_UNUSED_TOPIC: _PLAIN,
}

NAME_SERVER: dict[RequestCode, tuple[Ask, ...]] = {
    _C.REGISTER_BROKER: (),  # In the test, with as many topics as fit.
    _C.BROKER_HEARTBEAT: _PLAIN,
    _C.QUERY_DATA_VERSION: _PLAIN,
    _C.GET_BROKER_MEMBER_GROUP: _PLAIN,
    _C.GET_BROKER_CLUSTER_INFO: _PLAIN,
    _C.GET_ROUTEINFO_BY_TOPIC: (Ask(fields={"topic": "T0"}),),
    _C.GET_ALL_TOPIC_LIST_FROM_NAMESERVER: _PLAIN,
    _C.GET_TOPICS_BY_CLUSTER: _PLAIN,
    _C.GET_SYSTEM_TOPIC_LIST_FROM_NS: _PLAIN,
    _C.GET_UNIT_TOPIC_LIST: _PLAIN,
    _C.GET_HAS_UNIT_SUB_TOPIC_LIST: _PLAIN,
    _C.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST: _PLAIN,
    _C.PUT_KV_CONFIG: _PLAIN,
    _C.GET_KV_CONFIG: _PLAIN,
    _C.GET_KVLIST_BY_NAMESPACE: _PLAIN,
    _C.DELETE_KV_CONFIG: _PLAIN,
    _C.GET_NAMESRV_CONFIG: _PLAIN,
    _C.UPDATE_NAMESRV_CONFIG: (Ask(body=lambda: b"scanNotActiveBrokerInterval=5000\n"),),
    **{code: _PLAIN for code in RequestCode if code.name.startswith("AUTH_")},
    _C.REGISTER_TOPIC_IN_NAMESRV: _PLAIN,
    _C.WIPE_WRITE_PERM_OF_BROKER: _PLAIN,
    _C.ADD_WRITE_PERM_OF_BROKER: _PLAIN,
    _C.DELETE_TOPIC_IN_NAMESRV: (Ask(fields={"topic": "T0"}),),
    _C.UNREGISTER_BROKER: _PLAIN,
}
