"""A broker with a name server on free ports of this machine, for tests.

    from mqlake.testing import broker

    with broker() as running, running.producer() as producer:
        producer.send(Message(topic="orders", body=b"..."))
        with running.consumer("billing", "orders") as consumer:
            message = consumer.receive(10)

Clients of other packages take `running.name_server`.

`mqlake.testing.fixtures` has it as a pytest fixture. Both need `pip install 'mqlake[store]'`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mqlake.testing.running_broker import RunningBroker as RunningBroker
    from mqlake.testing.running_broker import broker as broker
else:
    from mqlake.exports import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "RunningBroker": "running_broker",
            "broker": "running_broker",
        },
    )
