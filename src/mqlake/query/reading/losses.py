"""Messages that a query selects but that are missing."""

from __future__ import annotations

from typing import Protocol

from mqlake.errors import StoreError
from mqlake.query.reading.log import logger

log = logger()


class _LossOptions(Protocol):
    @property
    def fail_on_data_loss(self) -> bool:
        """Return whether a query fails if messages are lost."""
        ...


def data_loss(options: _LossOptions, what: str) -> None:
    """Raise an error about missing messages, or log it if losses are tolerated.

    Raises:
        StoreError: losses are not tolerated.
    """
    if options.fail_on_data_loss:
        raise StoreError(
            f"{what}; set failOnDataLoss to false to continue without the lost messages"
        )
    log.warning("%s", what)
