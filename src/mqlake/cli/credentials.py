"""The user with which commands sign their requests, from the environment.

They have no options for it: other users of a machine can read command lines.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from mqlake.cli.options import UsageError

if TYPE_CHECKING:
    from mqlake.protocol.signature import Credentials

ACCESS_KEY, SECRET_KEY = "MQLAKE_ACCESS_KEY", "MQLAKE_SECRET_KEY"


def credentials() -> Credentials | None:
    """Return the user of MQLAKE_ACCESS_KEY and MQLAKE_SECRET_KEY; None without them.

    Raises:
        UsageError: only one of them is set.
    """
    access, secret = os.environ.get(ACCESS_KEY, ""), os.environ.get(SECRET_KEY, "")
    if not access and not secret:
        return None
    if not access or not secret:
        missing = SECRET_KEY if access else ACCESS_KEY
        raise UsageError(f"set {missing}, too: requests are signed with both")
    from mqlake.protocol.signature import Credentials

    return Credentials(access, secret)
