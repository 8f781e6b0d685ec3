"""Open the tracer of a producer or a consumer."""

from __future__ import annotations

import random

from mqlake.client.errors import NoRouteError
from mqlake.client.instance import ClientInstance
from mqlake.client.routes import DEFAULT_QUEUES
from mqlake.client.trace.tracer import Tracer
from mqlake.formats.properties import KEYS, UNIQ_KEY, WAIT, encode_properties
from mqlake.formats.topic_names import AUTO_CREATE_TOPIC, TRACE_TOPIC
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.headers.send import SendMessageHeaderV2
from mqlake.storage.clock import SystemClock

_GROUP = "_INNER_TRACE_PRODUCER"
_TIMEOUT = 5.0


def open_tracer(instance: ClientInstance, trace: bool | str) -> Tracer | None:
    """Return a tracer that uses the connections of an instance, None if tracing is off.

    Args:
        trace: the topic that they go to; True for RocketMQ's own, False for no traces.
    """
    if trace is False:
        return None
    topic, clock = TRACE_TOPIC if trace is True else trace, SystemClock()

    async def send(body: bytes, keys: str) -> None:
        """Store a trace message.

        Raises:
            MqlakeError: the message is not stored, or perhaps not.
        """
        queues = (await instance.routes.to_publish(topic)).write_queues
        if not queues:
            raise NoRouteError(f"topic {topic} has no queue that can be written to")
        queue = random.choice(queues)  # noqa: S311 (any will do)
        address = instance.routes.master_of(queue)
        if address is None:
            raise NoRouteError(f"broker {queue.broker_name} has no master now")
        properties = {KEYS: keys, UNIQ_KEY: instance.unique_keys.next(), WAIT: "true"}
        header = SendMessageHeaderV2(
            producer_group=_GROUP,
            topic=topic,
            default_topic=AUTO_CREATE_TOPIC,
            default_topic_queue_nums=DEFAULT_QUEUES,
            queue_id=queue.queue_id,
            sys_flag=0,
            born_timestamp=clock.milliseconds(),
            flag=0,
            properties=encode_properties(properties).decode(),
            reconsume_times=0,
            unit_mode=False,
            batch=False,
        )
        await instance.cluster.ask(
            address, RequestCode.SEND_MESSAGE_V2, header, body, seconds=_TIMEOUT
        )

    return Tracer(send)
