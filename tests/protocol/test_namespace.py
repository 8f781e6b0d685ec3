"""Names in namespaces: what RocketMQ's `NamespaceUtil` makes of them."""

from __future__ import annotations

import pytest

from mqlake.protocol.namespace import Namespace

SHOP = Namespace("shop")


@pytest.mark.parametrize(
    ("name", "wrapped"),
    [
        ("orders", "shop%orders"),
        ("%RETRY%billing", "%RETRY%shop%billing"),
        ("%DLQ%billing", "%DLQ%shop%billing"),
        ("a%b", "shop%a%b"),
        ("shopping", "shop%shopping"),
    ],
)
def test_names_are_wrapped_and_unwrapped(name: str, wrapped: str) -> None:
    assert SHOP.wrap(name) == wrapped
    assert SHOP.wrap(wrapped) == wrapped
    assert SHOP.unwrap(wrapped) == name
    assert SHOP.unwrap(name) == name
    assert Namespace().wrap(name) == name
    assert Namespace().unwrap(wrapped) == wrapped


@pytest.mark.parametrize(
    "name", ["", "TBW102", "RMQ_SYS_TRACE_TOPIC", "rmq_sys_any", "CID_RMQ_SYS_TRANS"]
)
def test_system_names_stay(name: str) -> None:
    assert SHOP.wrap(name) == name
    assert SHOP.unwrap(name) == name


def test_names_of_other_namespaces_stay() -> None:
    assert SHOP.unwrap("other%orders") == "other%orders"
    assert SHOP.unwrap("%RETRY%other%billing") == "%RETRY%other%billing"
