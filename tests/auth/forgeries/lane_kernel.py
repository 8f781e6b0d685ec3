"""The lane's check of a signature, as a kernel of its own."""

# pyright: basic
# Reason: compiled by Numba, whose types are inferred.

from __future__ import annotations

from mqlake.broker.lane.compiled.signatures import check_signature
from mqlake.kernels.jit import kernel
from mqlake.kernels.memory import borrow


@kernel
def checked(state, data, starts, lengths, properties, message, users):
    """Return what `check_signature` does."""
    users = (
        borrow(users.numbers),
        borrow(users.names),
        borrow(users.name_sizes),
        borrow(users.keys),
        borrow(users.text),
    )
    fields = borrow(starts), borrow(lengths)
    return check_signature(state, borrow(data), fields, borrow(properties), borrow(message), users)
