"""What one check found."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Severity(StrEnum):
    """How much a finding matters."""

    OK = "ok"
    NOTE = "note"
    """Something works less well, or a part of mqlake that may not be wanted is missing."""
    PROBLEM = "problem"
    """Something fails that is installed, or was asked for."""


class CheckResult(msgspec.Struct, frozen=True):
    """What a check found, and how to mend it.

    Attributes:
        name: of what was checked, such as "kernels".
        state: how much it matters.
        found: what is there, or what is missing, in one sentence.
        mend: a command, or what else to do; empty if there is nothing to do.
    """

    name: str
    state: Severity
    found: str
    mend: str = ""
