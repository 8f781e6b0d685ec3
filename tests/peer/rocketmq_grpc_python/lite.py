"""Lite consumers of RocketMQ's Python client: argv is the endpoint; prints messages as JSON."""

import json
import sys
import threading
import time

from rocketmq import (
    ClientConfiguration,
    ConsumeResult,
    Credentials,
    LitePushConsumer,
    LiteSimpleConsumer,
    Message,
    MessageListener,
    Producer,
)

TOPIC, GROUP = "Sessions", "agents"
pushed, all_pushed = [], threading.Event()


class Listener(MessageListener):
    def consume(self, message):
        pushed.append(message.body.decode())
        if len(pushed) >= 6:
            all_pushed.set()
        return ConsumeResult.SUCCESS


def simple(configuration):
    consumer = LiteSimpleConsumer(TOPIC, configuration, GROUP, 5)
    consumer.startup()
    while True:  # Until its settings have come, it believes that its quota is 0.
        try:
            consumer.subscribe_lite("c")
            break
        except Exception:  # noqa: BLE001 (of several types)
            time.sleep(0.1)
    found = []
    while len(found) < 3:
        for message in consumer.receive(32, 60) or []:
            found.append(message.body.decode())
            consumer.ack(message)
    consumer.shutdown()
    return found


def main():
    configuration = ClientConfiguration(sys.argv[1], Credentials())
    producer = Producer(configuration, (TOPIC,))
    producer.startup()
    consumer = LitePushConsumer(configuration, GROUP, TOPIC, Listener())
    consumer.startup()
    for lite in "ab":
        consumer.subscribe_lite(lite)
    for number in range(3):
        for lite in "abc":
            message = Message()
            message.topic, message.lite_topic = TOPIC, lite
            message.body = f"{lite}{number}".encode()
            producer.send(message)
    all_pushed.wait(120)
    consumer.shutdown()
    received = simple(configuration)
    producer.shutdown()
    print(json.dumps({"pushed": sorted(pushed), "received": received}))


if __name__ == "__main__":
    main()
