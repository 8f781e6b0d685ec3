"""Ask several brokers at the same time: one that hangs neither delays nor hides the others."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple, TypeVar

import msgspec

from mqlake.client.cluster import TIMEOUT, MasterBroker
from mqlake.errors import MqlakeError
from mqlake.remoting.errors import ConnectionFailedError, RequestTimeoutError

T = TypeVar("T")

_DEADLINE: Final = 2 * TIMEOUT
"""Seconds for all that one broker is asked. A request has its own, shorter timeout."""


class Changed(msgspec.Struct, rename="camel"):
    """A broker on which something was changed."""

    broker_name: str
    address: str


class BrokerFailure(NamedTuple):
    """A broker that did not do what it was asked.

    Attributes:
        broker: its name, or its address if it has no name.
        error: its refusal, or why there is no answer.
    """

    broker: str
    error: MqlakeError

    @property
    def is_silent(self) -> bool:
        """Whether the broker did not answer, so that it may have done it all the same."""
        return isinstance(self.error, (ConnectionFailedError, RequestTimeoutError))

    def missing(self, what: str) -> str:
        """Return a sentence that says what is missing, such as "its queues are missing"."""
        did = "did not answer" if self.is_silent else "refused"
        return f"{self.broker} {did}: {what} ({self.error})"


class PartialChangeError(MqlakeError):
    """Some brokers made a change, and others did not.

    Attributes:
        changed: the brokers that made it.
        failures: the others.
    """

    def __init__(self, changed: Sequence[MasterBroker], failures: Sequence[BrokerFailure]) -> None:
        names = ", ".join(_name(each) for each in changed) or "no broker"
        reasons = "; ".join(f"{each.broker} {_outcome(each)}: {each.error}" for each in failures)
        super().__init__(f"changed on {names}; {reasons}")
        self.changed, self.failures = list(changed), list(failures)


def _outcome(failure: BrokerFailure) -> str:
    if failure.is_silent:
        return "did not answer, so it may or may not have changed"
    return "refused"


async def read_each(
    brokers: Sequence[MasterBroker],
    read: Callable[[MasterBroker], Awaitable[T]],
    missing: list[BrokerFailure] | None = None,
    seconds: float = _DEADLINE,
) -> list[T]:
    """Return the answers of brokers that are asked at the same time, in their order.

    Args:
        read: asks one broker.
        missing: gets the brokers that did not answer or refused; None if all must answer.
        seconds: for all that one broker is asked.

    Raises:
        MqlakeError: a broker did not answer or refused, and `missing` is None; or all of them.
    """
    answers, failures = await _ask(brokers, read, seconds)
    if failures and (missing is None or not answers):
        raise failures[0].error
    if missing is not None:
        missing += failures
    return [answer for _, answer in answers]


async def change_each(
    brokers: Sequence[MasterBroker], change: Callable[[MasterBroker], Awaitable[T]]
) -> list[tuple[MasterBroker, T]]:
    """Change something on brokers at the same time; return them with their answers.

    Every broker is asked, also if others refuse.

    Args:
        change: asks one broker.

    Raises:
        PartialChangeError: some brokers did not make the change; it names all.
        MqlakeError: no broker made it, all for the same reason.
    """
    answers, failures = await _ask(brokers, change, _DEADLINE)
    if not failures:
        return answers
    if not answers and len({str(each.error) for each in failures}) == 1:
        raise failures[0].error
    raise PartialChangeError([broker for broker, _ in answers], failures)


def changed_brokers(answers: Sequence[tuple[MasterBroker, object]]) -> list[Changed]:
    """Return the brokers that `change_each` has changed."""
    return [Changed(broker.name, broker.address) for broker, _ in answers]


async def _ask(
    brokers: Sequence[MasterBroker],
    work: Callable[[MasterBroker], Awaitable[T]],
    seconds: float,
) -> tuple[list[tuple[MasterBroker, T]], list[BrokerFailure]]:
    async def one(broker: MasterBroker) -> T | BrokerFailure:
        try:
            async with asyncio.timeout(seconds):
                return await work(broker)
        except TimeoutError:
            text = f"{broker.address}: no answer within {seconds:.0f} s"
            return BrokerFailure(_name(broker), RequestTimeoutError(text))
        except MqlakeError as error:
            return BrokerFailure(_name(broker), error)

    found = await asyncio.gather(*(one(broker) for broker in brokers))
    both = list(zip(brokers, found, strict=True))
    return (
        [(broker, each) for broker, each in both if not isinstance(each, BrokerFailure)],
        [each for each in found if isinstance(each, BrokerFailure)],
    )


def _name(broker: MasterBroker) -> str:
    return broker.name or broker.address
