"""Producers and consumers for any RocketMQ cluster, on asyncio.

    async with Producer("localhost:9876") as producer:
        await producer.send(Message(topic="orders", body=b"..."))

    async with Consumer("localhost:9876", "billing", "orders") as consumer:
        async for message in consumer:
            await message.ack()

`mqlake.client.errors` defines the errors, and says what each means for a message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mqlake.client.cluster import Cluster as Cluster
    from mqlake.client.consumer.consumed import ConsumedMessage as ConsumedMessage
    from mqlake.client.consumer.consumer import Consumer as Consumer
    from mqlake.client.consumer.pull_consumer import PullConsumer as PullConsumer
    from mqlake.client.consumer.settings import ConsumerSettings as ConsumerSettings
    from mqlake.client.consumer.simple_consumer import PoppedMessage as PoppedMessage
    from mqlake.client.consumer.simple_consumer import SimpleConsumer as SimpleConsumer
    from mqlake.client.consumer.subscriptions import Sql as Sql
    from mqlake.client.errors import BrokerError as BrokerError
    from mqlake.client.errors import ClientError as ClientError
    from mqlake.client.errors import ClosedError as ClosedError
    from mqlake.client.errors import NoReplyError as NoReplyError
    from mqlake.client.errors import NoRouteError as NoRouteError
    from mqlake.client.errors import NotStoredError as NotStoredError
    from mqlake.client.errors import PerhapsStoredError as PerhapsStoredError
    from mqlake.client.errors import RefusedError as RefusedError
    from mqlake.client.errors import SendError as SendError
    from mqlake.client.message import Message as Message
    from mqlake.client.message import MessageQueue as MessageQueue
    from mqlake.client.message import ReceivedMessage as ReceivedMessage
    from mqlake.client.metrics import ClientMetrics as ClientMetrics
    from mqlake.client.producer.outgoing import Compression as Compression
    from mqlake.client.producer.producer import Producer as Producer
    from mqlake.client.producer.result import SendResult as SendResult
    from mqlake.client.producer.result import SendStatus as SendStatus
    from mqlake.client.producer.sending import Tries as Tries
    from mqlake.client.producer.transactions import Transaction as Transaction
    from mqlake.client.producer.transactions import TransactionState as TransactionState
    from mqlake.protocol.signature import Credentials as Credentials
    from mqlake.remoting.tls.options import ClientTls as ClientTls
    from mqlake.remoting.tls.options import Verify as Verify
else:
    from mqlake.exports import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "BrokerError": "errors",
            "ClientError": "errors",
            "ClientTls": "mqlake.remoting.tls.options",
            "Credentials": "mqlake.protocol.signature",
            "ClosedError": "errors",
            "Cluster": "cluster",
            "Compression": "producer.outgoing",
            "ConsumedMessage": "consumer.consumed",
            "Consumer": "consumer.consumer",
            "ConsumerSettings": "consumer.settings",
            "Message": "message",
            "MessageQueue": "message",
            "NoReplyError": "errors",
            "NoRouteError": "errors",
            "NotStoredError": "errors",
            "PerhapsStoredError": "errors",
            "PoppedMessage": "consumer.simple_consumer",
            "Producer": "producer.producer",
            "PullConsumer": "consumer.pull_consumer",
            "ReceivedMessage": "message",
            "ClientMetrics": "metrics",
            "RefusedError": "errors",
            "SendError": "errors",
            "SendResult": "producer.result",
            "SendStatus": "producer.result",
            "SimpleConsumer": "consumer.simple_consumer",
            "Sql": "consumer.subscriptions",
            "Transaction": "producer.transactions",
            "TransactionState": "producer.transactions",
            "Tries": "producer.sending",
            "Verify": "mqlake.remoting.tls.options",
        },
    )
