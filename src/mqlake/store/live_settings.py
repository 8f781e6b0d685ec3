"""The settings of a running store or broker, and the subscribers to their changes.

Settings are frozen. A change replaces the whole snapshot, so that nobody ever sees half of it. A
part that needs a setting reads `now` each time, or stores a value that it derives and subscribes to
those fields. A setting that a part can read only once is declared `Restart` at its field
(`store.bounds`), and its change is refused here.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

import msgspec

from mqlake.errors import StoreError
from mqlake.store.bounds import Effect, effects, encoded_name
from mqlake.store.settings import StoreSettings, make_settings

S = TypeVar("S", bound=msgspec.Struct)
S_co = TypeVar("S_co", bound=msgspec.Struct, covariant=True)

ROLE = frozenset(("broker_role", "broker_id"))
"""Fields that change when a broker is promoted or demoted (`LiveSettings.switch`)."""

_log = logging.getLogger(__name__)


class Current(Generic[S_co]):
    """The current settings, for the parts that use them. For one thread.

    Attributes:
        now: the current snapshot. Read it each time: a change replaces it.
    """

    now: S_co

    def __init__(self, settings: S_co) -> None:
        self.now = settings
        self._subscribers: list[tuple[frozenset[str], Callable[[], object]]] = []

    def on_change(self, function: Callable[[], object], *names: str) -> None:
        """Call a function whenever one of these fields has changed; `now` has the new values.

        Args:
            names: attributes of the settings.

        Raises:
            StoreError: the field does not exist, or changes only at a restart.
        """
        known = effects(type(self.now))
        for name in names:
            if known.get(name) is not Effect.NOW and name not in ROLE & known.keys():
                raise StoreError(
                    f"setting {name} does not change while a broker runs: restart the broker"
                )
        self._subscribers.append((frozenset(names), function))


class LiveSettings(Current[S]):
    """Settings that their owner may replace."""

    def replace(self, settings: S) -> None:
        """Replace the settings, and notify the subscribers of what changed.

        A subscriber that fails is logged, and does not keep the others from being notified.

        Raises:
            StoreError: a field has changed that takes effect only at a restart; nothing is changed.
        """
        self._replace(settings, frozenset())

    def switch(self, settings: S) -> None:
        """Do what `replace` does, for settings with another role: promote or demote a broker.

        Raises:
            StoreError: as for `replace`, for any field that is not in `ROLE`.
        """
        self._replace(settings, ROLE)

    def _replace(self, settings: S, also: frozenset[str]) -> None:
        kind, old = type(settings), self.now
        changed = {name for name in effects(kind) if getattr(settings, name) != getattr(old, name)}
        for name in sorted(changed):
            if effects(kind)[name] is Effect.RESTART and name not in also:
                raise StoreError(
                    f"setting {encoded_name(kind, name)} takes effect only at a restart: restart "
                    "the broker"
                )
        self.now = settings
        for names, function in self._subscribers:
            if not changed.isdisjoint(names):
                try:
                    function()
                except Exception as error:  # noqa: BLE001 (one part does not keep the others back)
                    what = ", ".join(sorted(changed & names))
                    _log.error("a change of %s was not applied", what, exc_info=error)


GivenSettings = (
    StoreSettings | Current[StoreSettings] | Mapping[str, object] | str | os.PathLike[str] | None
)
"""Accepted forms of settings: a `StoreSettings`, a `Current` whose owner may replace it, a mapping
of `broker.conf` names to values, or the path of a `broker.conf`. None means the defaults."""


def open_settings(given: GivenSettings) -> Current[StoreSettings]:
    """Return settings with which a store is opened.

    Raises:
        StoreError: a setting has an invalid value, or a file cannot be read.
    """
    return given if isinstance(given, Current) else current(make_settings(given))


def current(settings: S | Current[S]) -> Current[S]:
    """Return settings in the form for the parts of a store; `Current` ones are returned as they
    are.
    """
    return settings if isinstance(settings, Current) else LiveSettings(settings)
