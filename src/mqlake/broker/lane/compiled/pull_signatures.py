"""Check who has signed a pull whose decision is known, and whether this user may make it.

What is signed follows from the decision and the numbers of the pull.
"""

# pyright: basic
# Reason: compiled by Numba, whose types are inferred.

from __future__ import annotations

from mqlake.broker.lane.compiled.pull_header import put_header
from mqlake.broker.lane.compiled.signatures import has_signed
from mqlake.broker.lane.layout import END_USER, FIRST_USER, IS_OPEN, TEXT_AT
from mqlake.broker.lane.pull_layout import (
    ASKED,
    IS_SIGNED,
    NEW_PERMISSION,
    NEW_USER,
    OTHER,
    SERVED,
    SIGNATURE,
    SIGNER,
)
from mqlake.kernels.jit import inlined
from mqlake.kernels.memory import borrow


@inlined
def check_signer(tables, data, decision):
    """Return SERVED if the pull that was read may be served; otherwise a reason to return.

    Args:
        tables: see `PullTables`.
        data: has the header that was read.
    """
    state, users, numbers = tables.state, tables.users, tables.numbers
    if users[IS_OPEN] != 0:
        return SERVED
    if tables.decisions[decision, IS_SIGNED] == 0:
        return OTHER
    signer = state[SIGNER]
    if signer < users[FIRST_USER] or signer >= users[END_USER]:
        return NEW_USER
    user = signer - users[FIRST_USER]
    # A decision is that of one user: the pulls of others have another access key.
    if tables.permissions[decision, user] == 0:
        state[ASKED] = decision
        return NEW_PERMISSION
    text = borrow(tables.user_text)
    end = put_header(text, TEXT_AT, tables.signed, tables.signed_parts, decision, numbers)
    keys = borrow(tables.user_keys)
    return SERVED if has_signed(text, end, keys, user, data, numbers[SIGNATURE]) else OTHER
