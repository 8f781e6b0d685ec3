"""Messages that a query wants and that are not there."""

from __future__ import annotations

from typing import Protocol

from mqlake.errors import StoreError
from mqlake.spark.reading.log import logger

log = logger()


class _Options(Protocol):
    @property
    def fail_on_data_loss(self) -> bool:
        """Whether a query fails if messages are lost."""
        ...


def data_loss(options: _Options, what: str) -> None:
    """Raise, or log if losses are tolerated, that messages are not there.

    Raises:
        StoreError: losses are not tolerated.
    """
    if options.fail_on_data_loss:
        raise StoreError(f"{what}; set failOnDataLoss to false to go on without what is lost")
    log.warning("%s", what)
