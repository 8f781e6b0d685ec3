"""Run the command line in this process."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from mqlake.cli.app import run
from tests.client.patience import patient_producers

__all__ = ["Mqlake", "Ran", "mqlake", "patient_producers"]


class Ran(NamedTuple):
    """What a command line answered."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one JSON object on stdout; fails where there is anything else."""
        assert self.out.endswith("\n")
        assert self.out.count("\n") == 1
        return json.loads(self.out)


Mqlake = Callable[..., Ran]


@pytest.fixture
def mqlake(capsysbinary: pytest.CaptureFixture[bytes]) -> Mqlake:
    """Return a function that runs `mqlake ARGUMENTS…`."""

    def call(*arguments: object) -> Ran:
        code = run([str(argument) for argument in arguments])
        captured = capsysbinary.readouterr()
        return Ran(code, captured.out.decode(), captured.err.decode())

    return call
