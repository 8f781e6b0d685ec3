"""The short version of the forgeries of a night."""

from __future__ import annotations

import logging
import random
from pathlib import Path

import pytest

from mqlake.auth import authentication
from mqlake.dispatch.kernel import is_compiled
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.signature import signed
from tests.auth.forgeries import signed_pulls, signed_sends
from tests.auth.forgeries.gate import GONE, POOR, ROOT, Gate, is_signed
from tests.auth.forgeries.kinds import KINDS, example, judged
from tests.auth.forgeries.run import run, searched


@pytest.mark.parametrize("seed", [1, 2])
def test_nothing_gets_in_and_nothing_gets_out(seed: int) -> None:
    outcome = run(10_000, seed * 1_000_000)
    assert outcome.violations == []
    assert set(outcome.counts) == set(KINDS)
    assert outcome.log_lines > 1000


def test_the_gate_is_neither_open_nor_closed(tmp_path: Path) -> None:
    gate, chance = Gate(tmp_path), random.Random(1)
    for _ in range(300):
        asked = example(chance)
        right = signed(asked, ROOT)
        assert is_signed(right.fields, right.body, right.version) is ROOT
        assert gate.ask(right)[0]
        assert not gate.ask(signed(asked, GONE))[0]
        is_served, answers = gate.ask(signed(asked, POOR))
        if is_served:
            assert asked.code in (RequestCode.UNREGISTER_CLIENT, RequestCode.CHECK_CLIENT_CONFIG)
        else:
            assert answers


def test_a_gate_that_does_not_check_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, chance = Gate(tmp_path), random.Random(2)

    def is_signature(_claimed: str, _right: str) -> bool:
        return True

    monkeypatch.setattr(authentication, "is_signature", is_signature)
    found = [KINDS["signatures"](gate, chance) for _ in range(100)]
    assert any("of nobody was served" in each for each in found)
    assert judged(gate, example(chance), "unsigned") == ""


@pytest.mark.skipif(not is_compiled(), reason="there is no lane")
def test_the_lane_accepts_honest_sends(tmp_path: Path) -> None:
    gate = Gate(tmp_path)
    found = [signed_sends.honest(gate, random.Random(seed)) for seed in range(300)]
    assert set(found) == {""}


@pytest.mark.skipif(not is_compiled(), reason="there is no lane")
def test_the_lane_accepts_honest_pulls(tmp_path: Path) -> None:
    gate = Gate(tmp_path)
    found = [signed_pulls.honest(gate, random.Random(seed)) for seed in range(300)]
    assert set(found) == {""}


@pytest.mark.skipif(not is_compiled(), reason="there is no lane")
def test_pulls_that_the_lane_does_not_check_are_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate(tmp_path)

    def accepts(*_: object) -> bool:
        return True

    monkeypatch.setattr(signed_pulls.PullGate, "accepts", accepts)
    found = [signed_pulls.signed_pulls(gate, random.Random(seed)) for seed in range(100)]
    assert any("accepts what is refused" in each for each in found)


@pytest.mark.skipif(not is_compiled(), reason="there is no lane")
def test_a_lane_that_does_not_check_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mqlake.broker.lane.compiled.signatures import RIGHT
    from tests.auth.forgeries import lane_kernel

    gate = Gate(tmp_path)

    def checked(*_: object) -> int:
        return RIGHT

    monkeypatch.setattr(lane_kernel, "checked", checked)
    found = [signed_sends.signed_sends(gate, random.Random(seed)) for seed in range(100)]
    assert any("accepts what is refused" in each for each in found)


def test_a_password_in_a_log_is_noticed() -> None:
    with searched() as refusals:
        logging.getLogger("mqlake.auth").debug("the key is %s", ROOT.secret_key)
    assert len(refusals.leaks) == 1
