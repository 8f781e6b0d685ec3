"""Whether a live store accepts messages, and why not (docs/live-store.md)."""

from __future__ import annotations

import logging

from mqlake.errors import StoreError
from mqlake.store.append.appender import Appender
from mqlake.store.retention.retention import Retention
from mqlake.store.services import Services

_log = logging.getLogger(__name__)


class Health:
    """The failures of one store. For the store's thread.

    Attributes:
        services: the periodic work, with its failures.
        failure: why nothing is accepted until the store is opened again: the disk failed to keep
            accepted data, or a task of the store has ended.
        dispatch_failure: why the last tick failed; None if it did not.
        dispatch_failures: the number of failed ticks.
        not_writable: why messages are refused now; None if they are accepted.
        is_shut_down: whether the store is about to be closed.
    """

    def __init__(self, services: Services, retention: Retention, appender: Appender) -> None:
        self.services, self._retention, self._appender = services, retention, appender
        self.failure: StoreError | None = None
        self.dispatch_failure: StoreError | None = None
        self.dispatch_failures = 0
        self.not_writable: str | None = None
        self.is_shut_down = False

    def fail(self, error: StoreError) -> None:
        """Accept no more messages until the store is opened again, for this reason.

        Of the disk's errors, only a `SyncError` is such a reason: after any other error, the
        operation is tried again.
        """
        if self.failure is None:
            _log.error("the store accepts no more messages until it is opened again: %s", error)
            self.failure = error
        self.update()

    def dispatch_failed(self, error: Exception) -> None:
        """Note that a tick failed. Messages are refused from the next `update` on."""
        self.dispatch_failures += 1
        reason = f"dispatch failed: {type(error).__name__}: {error}"
        failure = error if isinstance(error, StoreError) else StoreError(reason)
        # The same failure recurs with every tick.
        if failure is not error and reason != str(self.dispatch_failure):
            _log.error("dispatch failed", exc_info=error)
        self.dispatch_failure = failure

    def dispatch_worked(self) -> None:
        """Note that a tick succeeded."""
        self.dispatch_failure = None

    def update(self) -> None:
        """Refuse messages if there is a reason, or accept them again."""
        failure = self.failure or self.dispatch_failure
        reason = str(failure) if failure else self._retention.not_writable
        if reason == self.not_writable:
            return
        if reason is not None:
            _log.error("the store accepts no messages: %s", reason)
        else:
            _log.info("the store accepts messages again")
        self.not_writable = reason
        self._appender.set_not_writable(reason)

    def shut_down(self) -> None:
        """Accept no more messages, because the store is about to be closed."""
        self.is_shut_down = True
        self._appender.shut_down()
