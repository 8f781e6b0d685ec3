"""`mqlake follow --metrics`: pages beside Spark's work."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mqlake.metrics.metric import Sample
    from mqlake.spark.follow.metrics import FollowProgress


@contextmanager
def served(
    address: tuple[str, int] | None,
    stores: Sequence[FollowProgress],
    others: Callable[[], Awaitable[Sequence[Sample]]] | None = None,
) -> Generator[None]:
    """Serve the metrics of followed stores while the block runs; nothing without an address.

    Args:
        address: host and port of the pages.
        others: returns the samples of what runs beside them.

    Raises:
        MqlakeError: a package is not installed, or the address cannot be listened on.
    """
    if address is None:
        yield
        return
    from mqlake.metrics.exporting.options import ServedPages
    from mqlake.metrics.page_thread import PageThread
    from mqlake.spark.follow.metrics import ObservedFollower

    with PageThread(ServedPages(*address), ObservedFollower(stores, others)):
        yield
