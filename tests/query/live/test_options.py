"""Options decide between a store directory and a running cluster."""

from __future__ import annotations

import pickle

import pytest

from mqlake.errors import FormatError
from mqlake.query.live.options import live_options
from mqlake.query.live.place import ENVIRONMENT, is_live
from mqlake.query.reading.limits import Limit

NAMES = {"nameServer": "a:9876;b:9876"}


def test_which_of_both(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ENVIRONMENT, raising=False)
    assert not is_live({"subscribe": "A"})
    assert not is_live({"path": "store"})
    assert is_live({"NAMESERVER": "a:1"})
    assert is_live({"rocketmq.namesrvAddr": "a:1"})
    with pytest.raises(FormatError, match="options path and nameServer cannot be combined"):
        is_live({"path": "store", **NAMES})


def test_the_environment_counts_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENVIRONMENT, "c:9876")
    assert not is_live({"path": "store"})
    assert is_live({})
    assert live_options({}).name_servers == "c:9876"
    assert live_options(NAMES).name_servers == NAMES["nameServer"]


def test_defaults() -> None:
    batch = live_options(NAMES, streaming=False)
    assert batch.starting == Limit(None, None, None, "earliest")
    assert live_options(NAMES, streaming=True).starting == Limit(None, None, None, "latest")
    assert (batch.retry_timeout, batch.pull_size, batch.group) == (120_000, 1024, None)
    assert batch.fail_on_data_loss


def test_offsets_by_broker() -> None:
    options = live_options(
        {
            **NAMES,
            "assign": '{"T": {"a": [0], "b": [0, 1]}, "U": [3]}',
            "startingOffsets": '{"T": {"a": {"0": 23}, "b": {"0": -2}}}',
        }
    )
    assert options.queues == (("T", "a", 0), ("T", "b", 0), ("T", "b", 1), ("U", "", 3))
    assert options.starting.offsets == {("T", "a", 0): 23, ("T", "b", 0): -2}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"accessPath": "scan"}, "option accessPath is for store directories"),
        ({"brokerName": "a"}, "option brokerName is for store directories"),
        ({"groupid": "a b"}, "option groupId: "),
        ({"subscribs": "A"}, "there is no option 'subscribs'; the nearest is subscribe"),
        ({"namesrvAddr": "c:1"}, "options nameServer and namesrvAddr are the same"),
        ({"retryTimeout": "soon"}, "is not a duration"),
        (
            {"startingOffsets": '{"T": {"a": {"0": -1}}}'},
            "T-a-0: a batch query cannot start at the latest",
        ),
        (
            {
                "startingOffsets": '{"T": {"a": {"0": 9}}}',
                "endingOffsets": '{"T": {"a": {"0": 8}}}',
            },
            "T-a-0 would start at 9, after its end at 8",
        ),
    ],
)
def test_wrong_options(options: dict[str, str], message: str) -> None:
    with pytest.raises(FormatError) as caught:
        live_options({**NAMES, **options}, streaming=False)
    assert message in str(caught.value)


def test_options_that_mean_nothing_are_told() -> None:
    given = {**NAMES, "groupId": "g", "maxOffsetsPerTrigger": "5"}
    assert live_options(given, streaming=False).ignored == ("groupId", "maxOffsetsPerTrigger")


def test_options_are_pickled_with_readers() -> None:
    options = live_options({**NAMES, "assign": '{"T": [0]}'})
    assert pickle.loads(pickle.dumps(options)) == options
