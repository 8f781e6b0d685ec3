"""RocketMQ's Python client and mqlake's broker in one process: `one_process.py SITE_PACKAGES`.

The packages of the client are found after those of this environment. Prints what was received.
"""

from __future__ import annotations

import sys
import time


def main() -> None:
    """Send and receive one message, and a transaction that the broker must ask about."""
    sys.path.append(sys.argv[1])
    from rocketmq import (  # pyright: ignore[reportMissingImports]
        ClientConfiguration,
        Credentials,
        FilterExpression,
        Message,
        Producer,
        SimpleConsumer,
        TransactionChecker,
        TransactionResolution,
    )

    from mqlake.broker.broker import Broker
    from mqlake.formats.config.topics import MESSAGE_TYPE, Topic
    from mqlake.testing import broker

    class Committing(TransactionChecker):
        def check(self, message: object) -> object:
            return TransactionResolution.COMMIT

    async def create(found: Broker) -> None:
        found.state.topics.put(Topic("Orders", 1, 1))
        kind = {MESSAGE_TYPE: "TRANSACTION"}
        found.state.topics.put(Topic("Payments", 1, 1, attributes=kind))

    def message(topic: str, body: bytes) -> Message:
        found = Message()
        found.topic, found.body = topic, body
        return found

    times = {"transactionTimeOut": 1000, "transactionCheckInterval": 1000}
    with broker(grpc=True, **times) as running:
        running.call(create)
        configuration = ClientConfiguration(running.grpc, Credentials(), request_timeout=60)
        consumer = SimpleConsumer(
            configuration,
            "billing",
            {topic: FilterExpression() for topic in ("Orders", "Payments")},
            await_duration=5,
        )
        consumer.startup()
        producer = Producer(configuration, ("Orders",))
        producer.startup()
        producer.send(message("Orders", b"an order"))
        paying = Producer(configuration, ("Payments",), checker=Committing())
        paying.startup()
        paying.send(message("Payments", b"a payment"), paying.begin_transaction())
        received: list[str] = []
        while len(received) < 2:
            for each in consumer.receive(16, 30) or ():
                received.append(each.body.decode())
                consumer.ack(each)
            time.sleep(0.01)
        print(sorted(received))
        for client in (paying, producer, consumer):
            client.shutdown()


if __name__ == "__main__":
    main()
