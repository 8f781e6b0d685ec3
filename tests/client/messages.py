"""A queue, a message of it, and routes of topics, for tests of parts of the client."""

from __future__ import annotations

from mqlake.client import MessageQueue
from mqlake.client.consumer.consumed import ConsumedMessage
from mqlake.client.routes import TopicRoute
from mqlake.protocol.bodies.route import BrokerData, QueueData, TopicRouteData

QUEUE = MessageQueue("t", "a", 0)


def consumed(offset: int, body: bytes = b"x") -> ConsumedMessage:
    return ConsumedMessage(
        topic="t",
        body=body,
        queue=QUEUE,
        queue_offset=offset,
        physical_offset=0,
        encoded_properties=b"",
        flag=0,
        sys_flag=0,
        born_timestamp=0,
        born_address=b"",
        store_timestamp=0,
        store_address=b"",
        reconsume_times=0,
    )


def route(**queues: int) -> TopicRoute:
    rows = [QueueData(name, count, count, 6) for name, count in queues.items()]
    brokers = [BrokerData("c", name, {0: f"{name}:1"}) for name in queues if name != "slave"]
    brokers.append(BrokerData("c", "slave", {1: "slave:1"}))
    return TopicRoute("t", TopicRouteData(queue_datas=rows, broker_datas=brokers))
