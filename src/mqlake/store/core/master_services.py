"""Services that rest while a store belongs to a slave: what they put comes from the master."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from mqlake.store.live_settings import Current
from mqlake.store.services import Service, Started
from mqlake.store.settings import StoreSettings


def of_master(
    services: Iterable[Service], begin: Callable[[], None], settings: Current[StoreSettings]
) -> list[Service]:
    """Return services that do the work of others while the store belongs to a master.

    Args:
        begin: called before they start again, to adopt what the master has done.
    """
    is_resting = False

    def resting(start: Callable[[], Started]) -> Callable[[], Started]:
        def start_at_master() -> Started:
            nonlocal is_resting
            if settings.now.is_slave:
                is_resting = True
                return None
            if is_resting:
                begin()
                is_resting = False
            return start()

        return start_at_master

    return [
        Service(lambda each=each: each.interval, resting(each.start), each.name)
        for each in services
    ]
