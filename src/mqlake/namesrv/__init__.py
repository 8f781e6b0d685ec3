"""A name server: the registered brokers, and the routes of topics (docs/name-server.md).

`NameServer` serves while its `async with` block runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mqlake.namesrv.name_server import NameServer as NameServer
    from mqlake.namesrv.settings import NamesrvSettings as NamesrvSettings
    from mqlake.namesrv.settings import make_namesrv_settings as make_namesrv_settings
else:
    from mqlake.exports import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "NameServer": "name_server",
            "NamesrvSettings": "settings",
            "make_namesrv_settings": "settings",
        },
    )
