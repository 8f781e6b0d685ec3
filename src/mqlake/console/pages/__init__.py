"""The pages of the console, by section: the navigation, and the routes of their pages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from starlette.routing import BaseRoute

from mqlake.console.access.roles import ConsoleRole
from mqlake.console.pages import cluster, delayed, groups, messages, sql, store_files, topics


class Section(NamedTuple):
    """A part of the console.

    Attributes:
        name: in the navigation.
        path: of the first page; the paths of its other pages begin with it.
        routes: returns the routes of its pages.
        role: which visitors see it in the navigation.
    """

    name: str
    path: str
    routes: Callable[[], list[BaseRoute]]
    role: ConsoleRole = ConsoleRole.VIEWER


SECTIONS: Final = (
    Section("Cluster", "/cluster", cluster.routes),
    Section("Topics", "/topics", topics.routes),
    Section("Groups", "/groups", groups.routes),
    Section("Messages", "/messages", messages.routes),
    Section("Delayed", "/delayed", delayed.routes),
    Section("Store", "/store", store_files.routes, ConsoleRole.ADMIN),
    Section("SQL", "/sql", sql.routes, ConsoleRole.ADMIN),
)
