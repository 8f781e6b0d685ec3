"""What a good broker and a good name server answer."""

from __future__ import annotations

import time

import msgspec

from mqlake.formats import record
from mqlake.protocol.bodies.heartbeat import ConsumerIds
from mqlake.protocol.bodies.route import BrokerData, QueueData, TopicRouteData
from mqlake.protocol.body import encode_body
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, response
from mqlake.protocol.headers.offsets import OffsetHeader
from mqlake.protocol.headers.pop import ChangeInvisibleTimeAnswerHeader, PopAnswerHeader
from mqlake.protocol.headers.pull import PullAnswerHeader
from mqlake.protocol.headers.send import SendMessageResponseHeader

ADDRESS = "127.0.0.1:10911"
BROKER = "broker-a"
QUEUES = 2
_PULL = 8
_ROUTE = encode_body(
    TopicRouteData(
        queue_datas=[QueueData(BROKER, QUEUES, QUEUES, 6)],
        broker_datas=[BrokerData("cluster", BROKER, {0: ADDRESS})],
    )
)
_OFFSETS = (
    RequestCode.QUERY_CONSUMER_OFFSET,
    RequestCode.GET_MAX_OFFSET,
    RequestCode.GET_MIN_OFFSET,
    RequestCode.SEARCH_OFFSET_BY_TIMESTAMP,
)
_SENDS = (
    RequestCode.SEND_MESSAGE_V2,
    RequestCode.SEND_BATCH_MESSAGE,
    RequestCode.SEND_REPLY_MESSAGE_V2,
)
_OFFSET_ID = "7F00000100002A9F0000000000000000"


class GoodBroker:
    """A broker of one topic, whose queues all have the same messages.

    Attributes:
        end: the next queue offset of each queue.
        members: the client ids of each consumer group.
    """

    def __init__(self) -> None:
        self.end = 5
        self.members: list[str] = []

    def answer(self, asked: Command) -> Command | None:
        """Return the answer to a request; None for a read that finds nothing yet."""
        if asked.code == RequestCode.GET_ROUTEINFO_BY_TOPIC:
            return response(asked, body=_ROUTE)
        if asked.code == RequestCode.HEART_BEAT:
            self._note_member(asked)
        elif asked.code == RequestCode.GET_CONSUMER_LIST_BY_GROUP:
            return response(asked, body=encode_body(ConsumerIds(self.members)))
        elif asked.code in _OFFSETS:
            is_end = asked.code == RequestCode.GET_MAX_OFFSET
            return response(asked, header=OffsetHeader(offset=self.end if is_end else 0))
        elif asked.code in _SENDS:
            header = SendMessageResponseHeader(msg_id=_OFFSET_ID, queue_id=0, queue_offset=7)
            return response(asked, header=header)
        elif asked.code == RequestCode.PULL_MESSAGE:
            return self._pulled(asked)
        elif asked.code == RequestCode.LOCK_BATCH_MQ:
            queues = msgspec.json.decode(bytes(asked.body)).get("mqSet", [])
            return response(asked, body=msgspec.json.encode({"lockOKMQSet": queues}))
        return self._pop(asked)

    def _note_member(self, asked: Command) -> None:
        beat = msgspec.json.decode(bytes(asked.body))
        client_id = beat["clientID"]
        if beat["consumerDataSet"] and client_id not in self.members:
            self.members.append(client_id)

    def _pulled(self, asked: Command) -> Command | None:
        fields = asked.fields
        at, topic = int(fields["queueOffset"]), fields["topic"]
        header = PullAnswerHeader(next_begin_offset=at, max_offset=self.end)
        if at > self.end or at < 0:
            header.next_begin_offset = self.end
            return response(asked, ResponseCode.PULL_OFFSET_MOVED, header)
        if at == self.end:
            return None
        header.next_begin_offset = last = min(self.end, at + _PULL)
        body = b"".join(_record(topic, int(fields["queueId"]), each) for each in range(at, last))
        return response(asked, header=header, body=body)

    def _pop(self, asked: Command) -> Command:
        now = int(time.time() * 1000)
        if asked.code == RequestCode.POP_MESSAGE:
            header = PopAnswerHeader(
                pop_time=now,
                invisible_time=60_000,
                revive_qid=0,
                rest_num=0,
                start_offset_info="0 0 0;0 1 0",
                msg_offset_info="0 0 0,1;0 1 0,1",
            )
            topic = asked.fields["topic"]
            return response(asked, header=header, body=_record(topic, 0, 0) + _record(topic, 1, 1))
        if asked.code == RequestCode.CHANGE_MESSAGE_INVISIBLETIME:
            changed = ChangeInvisibleTimeAnswerHeader(
                pop_time=now, invisible_time=1000, revive_qid=0
            )
            return response(asked, header=changed)
        return response(asked)


def empty_pull(asked: Command, end: int) -> Command:
    """Return the answer to a pull that has found nothing."""
    header = PullAnswerHeader(next_begin_offset=end, max_offset=end)
    return response(asked, ResponseCode.PULL_NOT_FOUND, header)


def _record(topic: str, queue_id: int, offset: int) -> bytes:
    return record.encode(
        topic=topic,
        body=b"good",
        properties={"UNIQ_KEY": f"{queue_id}-{offset}", "TAGS": "a"},
        queue_id=queue_id,
        queue_offset=offset,
        physical_offset=offset * 200,
        store_timestamp=1,
    )
