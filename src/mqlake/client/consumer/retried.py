"""Send a message to its group's retry topic (upstream: `sendMessageBackAsNormalMessage`).

A broker that leads a logic queue may not have its messages, and then cannot redeliver them.
"""

from __future__ import annotations

import random

from mqlake.client.errors import BrokerError, NoRouteError
from mqlake.client.instance import ClientInstance
from mqlake.client.message import ReceivedMessage
from mqlake.client.routes import DEFAULT_QUEUES
from mqlake.formats.properties import (
    DELAY,
    ORIGIN_MESSAGE_ID,
    RETRY_TOPIC,
    TRAN_MSG,
    encode_properties,
)
from mqlake.formats.topic_names import AUTO_CREATE_TOPIC, RETRY_PREFIX
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import request
from mqlake.protocol.headers.send import SendMessageHeaderV2

_FIRST_LEVEL = 3
_TIMEOUT = 5.0
_STORED = frozenset(
    (
        ResponseCode.SUCCESS,
        ResponseCode.FLUSH_DISK_TIMEOUT,
        ResponseCode.FLUSH_SLAVE_TIMEOUT,
        ResponseCode.SLAVE_NOT_AVAILABLE,
    )
)


async def send_to_retry_topic(
    instance: ClientInstance, group: str, message: ReceivedMessage, delay_level: int, most: int
) -> None:
    """Store a message in its group's retry topic.

    Args:
        delay_level: 0 for delays that grow, below 0 for the dead-letter topic.
        most: the maximum number of redeliveries before the message becomes a dead letter.

    Raises:
        MqlakeError: no broker has accepted it.
    """
    topic = RETRY_PREFIX + group
    route = await instance.routes.to_publish(topic)
    if not route.write_queues:
        raise NoRouteError(f"topic {topic}: no queue accepts messages now")
    queue = random.choice(route.write_queues)  # noqa: S311
    address = instance.routes.master_of(queue)
    if address is None:
        raise NoRouteError(f"broker {queue.broker_name} has no master now")
    header = SendMessageHeaderV2(
        producer_group=group,
        topic=topic,
        default_topic=AUTO_CREATE_TOPIC,
        default_topic_queue_nums=DEFAULT_QUEUES,
        queue_id=queue.queue_id,
        sys_flag=0,
        born_timestamp=message.born_timestamp,
        flag=message.flag,
        properties=_properties(message, delay_level),
        reconsume_times=message.reconsume_times + 1,
        unit_mode=False,
        max_reconsume_times=most if delay_level >= 0 else 0,
        batch=False,
    )
    command = request(RequestCode.SEND_MESSAGE_V2, header, message.body)
    answer = await instance.cluster.client.request(address, command, _TIMEOUT)
    if answer.code not in _STORED:
        raise BrokerError(answer.code, answer.remark or f"{topic}: code {answer.code}")


def _properties(message: ReceivedMessage, delay_level: int) -> str:
    properties = dict(message.properties)
    properties.pop(TRAN_MSG, None)
    properties.pop(DELAY, None)
    properties.setdefault(RETRY_TOPIC, message.queue.topic)
    properties.setdefault(ORIGIN_MESSAGE_ID, message.message_id)
    if delay_level >= 0:
        properties[DELAY] = str(delay_level or _FIRST_LEVEL + message.reconsume_times)
    return encode_properties(properties).decode()
