"""The slave that acts for a master that is gone, as a name server sees it.

Upstream: `RouteInfoManager.pickupTopicRouteData`, `notifyMinBrokerIdChanged`.
"""

from __future__ import annotations

from typing import NamedTuple

from mqlake.formats.config.topics import PERM_WRITE
from mqlake.namesrv.broker_table import MASTER_ID
from mqlake.protocol.bodies.route import BrokerData, QueueData
from mqlake.protocol.headers.namesrv import NotifyMinBrokerIdChangeHeader


class SmallestIdChange(NamedTuple):
    """The smallest broker id of a name is another one than before.

    Attributes:
        header: what the brokers are notified of.
        addresses: the brokers to notify.
    """

    header: NotifyMinBrokerIdChangeHeader
    addresses: tuple[str, ...]


def after_registration(data: BrokerData, ha_address: str) -> SmallestIdChange:
    """Return the change after a broker with a smaller id than all others has registered.

    The others are notified.

    Args:
        ha_address: where the new broker sends its log, if it is a master.
    """
    smallest = min(data.broker_addrs)
    others = [address for i, address in data.broker_addrs.items() if i != smallest]
    header = _header(data, offline=None, ha_address=ha_address)
    return SmallestIdChange(header, tuple(others))


def after_removal(data: BrokerData, address: str) -> SmallestIdChange:
    """Return the change after the broker with the smallest id was removed."""
    header = _header(data, offline=address, ha_address=None)
    return SmallestIdChange(header, tuple(data.broker_addrs.values()))


def _header(
    data: BrokerData, *, offline: str | None, ha_address: str | None
) -> NotifyMinBrokerIdChangeHeader:
    smallest = min(data.broker_addrs)
    return NotifyMinBrokerIdChangeHeader(
        min_broker_id=smallest,
        broker_name=data.broker_name,
        min_broker_addr=data.broker_addrs[smallest],
        offline_broker_addr=offline,
        ha_broker_addr=ha_address,
    )


def let_slave_act(data: BrokerData, queues: QueueData) -> None:
    """Show the slave with the smallest id as the master, if the master is gone.

    Only for a topic without write permission.
    """
    addresses = data.broker_addrs
    if not data.enable_acting_master or MASTER_ID in addresses or queues.perm & PERM_WRITE:
        return
    first = min(addresses)
    others = {i: address for i, address in addresses.items() if i != first}
    data.broker_addrs = {**others, MASTER_ID: addresses[first]}
