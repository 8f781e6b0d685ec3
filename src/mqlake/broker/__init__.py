"""A broker for stock RocketMQ clients, on one store (docs/broker.md).

`Broker` serves while its `async with` block runs; `make_broker_settings` makes its settings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mqlake.broker.broker import Broker as Broker
    from mqlake.broker.settings import BrokerSettings as BrokerSettings
    from mqlake.broker.settings import make_broker_settings as make_broker_settings
else:
    from mqlake.exports import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "Broker": "broker",
            "BrokerSettings": "settings",
            "make_broker_settings": "settings",
        },
    )
