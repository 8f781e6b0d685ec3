"""A broker that asks for TLS and signatures, and its users."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager

from mqlake.admin import Admin, acls, users
from mqlake.client import ClientTls, Credentials
from mqlake.protocol.bodies.auth import UserInfo
from mqlake.testing import RunningBroker, broker
from tests.auth.closed import CLOSED, ROOT
from tests.tls.certificates import Authority


@contextmanager
def closed_broker(authority: Authority) -> Generator[RunningBroker]:
    """Run a broker that asks for both, and gives a user no permission by itself."""
    settings = authority.settings() | CLOSED | {"authorizationEnabled": "true"}
    with broker(**settings) as running:
        yield running


def create_user(
    running: RunningBroker, authority: Authority, user: Credentials, *grants: acls.Grant
) -> None:
    """Create a user with these permissions."""

    async def create() -> None:
        async with Admin(
            running.name_server, tls=ClientTls(ca=authority.ca), credentials=ROOT
        ) as admin:
            info = UserInfo(user.access_key, user.secret_key, "Normal")
            await users.create(admin, info, None, running.address)
            for grant in grants:
                subject = f"User:{user.access_key}"
                await acls.create(admin, subject, grant, None, running.address)

    asyncio.run(create())
