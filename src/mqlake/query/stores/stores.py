"""The stores of a query by the names of their brokers, each with its own options."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

from mqlake.errors import FormatError, StoreError
from mqlake.query.reading import queue_json
from mqlake.query.reading.directory import Location, open_location
from mqlake.query.reading.queue_json import BrokerNumbers, BrokerQueue
from mqlake.query.store.options import StoreReadOptions, location_of, read_options
from mqlake.query.store.place import open_store
from mqlake.query.stores.places import find_places, with_one_path
from mqlake.storage.shown_url import shown_url
from mqlake.store.config.named_broker import named_broker

_NUMBERS: dict[str, Callable[[str], BrokerNumbers]] = {
    "startingOffsets": queue_json.of_brokers_offsets,
    "startingOffsetsByTimestamp": queue_json.of_brokers_timestamps,
    "endingOffsets": queue_json.of_brokers_offsets,
    "endingOffsetsByTimestamp": queue_json.of_brokers_timestamps,
}
_OF_ONE_STORE = ("archive", "brokerName", "startingPosition", "minOffsetsPerTrigger")
_HEAD = 256


class Stores(NamedTuple):
    """Options by the name of the store's broker, in order; and whether more stores may be found
    later.
    """

    options: dict[str, StoreReadOptions]
    has_pattern: bool


def check_many(given: Mapping[str, str]) -> None:
    """Raise an error if an option is valid for a single store only.

    Raises:
        FormatError: there is such an option.
    """
    names = {name.lower(): name for name in given}
    for option in _OF_ONE_STORE:
        if option.lower() in names:
            raise FormatError(
                f"option {option} is valid for one store only, but path names several"
            )


def without_queues(given: Mapping[str, str]) -> dict[str, str]:
    """Return the options that do not depend on the store: offsets by queue are left out."""
    return {
        name: text
        for name, text in with_one_path(given).items()
        if not text.strip().startswith("{")
    }


def find_stores(given: Mapping[str, str], *, streaming: bool) -> Stores:
    """Return the stores that options name.

    Raises:
        FormatError: options are wrong, two stores have the same name, or options name a broker
            without a store.
        StoreError: a store cannot be opened, or two are the same one; or, for a batch query, no
            store matches a pattern.
    """
    check_many(given)
    places = find_places(given)
    by_name: dict[str, str] = {}
    for path in places.paths:
        name = broker_name({**with_one_path(given), "path": path})
        if name in by_name:
            first, second = shown_url(by_name[name]), shown_url(path)
            raise FormatError(
                f"{first} and {second} both belong to broker {name}: name the directories "
                "after their brokers, or set brokerName in config/broker.properties of each "
                "store"
            )
        by_name[name] = path
    _check_known(given, by_name, has_pattern=places.has_pattern)
    options = {
        name: read_options(_of_store(given, name, path, len(by_name)), streaming=streaming)
        for name, path in sorted(by_name.items())
        if _is_assigned(given, name)
    }
    if not options and not streaming:
        patterns = ", ".join(map(shown_url, places.given))
        raise StoreError(
            f"{patterns}: no store matches this pattern: a store is a directory with commitlog/ in"
            " it"
        )
    return Stores(options, places.has_pattern)


def broker_name(given: Mapping[str, str]) -> str:
    """Return the name of a store's broker.

    This is `brokerName` of its own settings, otherwise its directory's name; if that is `store`,
    the name of the parent directory.
    """
    location = location_of(given)
    if named := named_broker(open_location(location)):
        return named
    parts = [part for part in location.name.split("/") if part]
    if len(parts) > 1 and parts[-1] == "store":
        del parts[-1]
    return parts[-1] if parts else location.name


def check_distinct(stores: Iterable[StoreReadOptions]) -> None:
    """Check that no store is named twice, for example through a link or as a copy.

    Raises:
        StoreError: two logs have the same beginning.
    """
    listed = list(stores)
    seen: dict[tuple[int, bytes], Location] = {}
    # Of a store and its copy, the one that lacks more of the log begins within the other.
    starts = {_log_start(options) for options in listed}
    for options in listed:
        with open_store(options.location) as store:
            for segment in store.log.segments:
                if segment.base not in starts:
                    continue
                file = store.log.file(segment)
                head = file.read(0, _HEAD).rstrip(b"\0") if file else b""
                if not head:
                    continue  # The file is allocated and not written yet, as in any new store.
                other = seen.setdefault((segment.base, head), options.location)
                if other != options.location:
                    raise StoreError(
                        f"{other.name} and {options.path} are the same store, or copies of "
                        "it: name only one"
                    )


def _log_start(options: StoreReadOptions) -> int:
    with open_store(options.location) as store:
        return store.log.min_offset


def _is_assigned(given: Mapping[str, str], name: str) -> bool:
    text = _value(given, "assign")
    return text is None or bool(_of_broker(_parsed("assign", text), name))


def _of_store(given: Mapping[str, str], name: str, path: str, count: int) -> dict[str, str]:
    """Return the options of one store: those about queues without the queues of other brokers."""
    own = {**with_one_path(given), "path": path, "brokerName": name}
    names = {option.lower(): option for option in own}
    if (text := _value(given, "assign")) is not None:
        queues = _of_broker(_parsed("assign", text), name)
        own[names["assign"]] = _json(queue_json.by_topic((topic, q) for topic, q in queues))
    for option in _NUMBERS:
        text = _value(given, option)
        if text is None or not text.strip().startswith("{"):
            continue
        numbers: BrokerNumbers = _parsed(option, text)
        _check_unambiguous(option, numbers, count)
        found = _of_broker(numbers, name)
        if found:
            tree: dict[str, dict[str, int]] = {}
            for (topic, queue_id), broker in found.items():
                tree.setdefault(topic, {})[str(queue_id)] = numbers[topic, broker, queue_id]
            own[names[option.lower()]] = _json(tree)
            continue
        del own[names[option.lower()]]
        if option.startswith("starting"):
            own.setdefault("startingOffsets", "earliest")
    return own


def _check_unambiguous(option: str, numbers: BrokerNumbers, count: int) -> None:
    if count < 2 or option.endswith("Timestamp"):
        return
    for (topic, broker, queue_id), offset in numbers.items():
        if not broker and offset >= 0:
            raise FormatError(
                f"option {option}: {topic}-{queue_id} may be in several stores: write "
                f'{{"{topic}": {{"broker": {{"{queue_id}": {offset}}}}}}}'
            )


def _check_known(given: Mapping[str, str], names: Iterable[str], *, has_pattern: bool) -> None:
    if has_pattern:
        return  # The store may be created later.
    known = {"", *names}
    for option in ("assign", *_NUMBERS):
        text = _value(given, option)
        if text is None or not text.strip().startswith("{"):
            continue
        for _, broker, _ in _parsed(option, text):
            if broker not in known:
                raise FormatError(
                    f"option {option}: broker {broker!r} has no store; the brokers are "
                    f"{', '.join(sorted(known - {''}))}"
                )


def _parsed(option: str, text: str) -> Any:
    parse: Callable[[str], Any] = _NUMBERS.get(option, queue_json.of_brokers_queues)
    try:
        return parse(text.strip())
    except ValueError as error:
        raise FormatError(f"option {option}: {text[:200]!r} is not {error}") from None


def _of_broker(queues: Iterable[BrokerQueue], name: str) -> dict[tuple[str, int], str]:
    """Return the queues of a broker, and the name that selects them; the broker's own name comes
    first.
    """
    found = {(topic, queue_id): broker for topic, broker, queue_id in queues if not broker}
    found |= {(topic, queue_id): broker for topic, broker, queue_id in queues if broker == name}
    return found


def _value(given: Mapping[str, str], option: str) -> str | None:
    return next((text for name, text in given.items() if name.lower() == option.lower()), None)


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
