"""Manage the brokers and name servers of mqlake and of RocketMQ over the wire.

    from mqlake.admin import Admin, topics

    async with Admin("127.0.0.1:9876") as admin:
        for queue in await topics.status(admin, "Orders"):
            print(queue)

The modules `acls`, `brokers`, `groups`, `messages`, `names`, `offsets`, `static_topics`, `topics`
and `users` are imported as modules; each of their functions takes an `Admin` (docs/admin.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mqlake.admin.admin import Admin as Admin
else:
    from mqlake.exports import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "Admin": "admin",
        },
    )
