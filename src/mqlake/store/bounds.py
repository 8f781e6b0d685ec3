"""The allowed values of settings: declared at their fields, and checked whenever settings are
created.

A harmful value is refused before it is used: otherwise a running broker would lose a service to it,
or a store that is opened next would wait forever.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import Enum
from functools import cache
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from mqlake.errors import FormatError, StoreError
from mqlake.formats.consume_queue import parse_delay_levels
from mqlake.formats.file_name import is_safe_topic
from mqlake.metrics.exporting.options import headers

_LONGEST_SHOWN = 80
_HOUR = re.compile(r" *([0-9]{1,2}) *")
_ADDRESS = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^\s:\[\]]{1,253}):([0-9]{1,5})")
_HOURS_A_DAY = 24
_LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
LAST_PORT = 0xFFFF
_LONGEST_NAME = 100
_LONGEST_PATH = 4000
_LONGEST_LIST = 10_000
_MOST_LEVELS = 1000
_LONGEST_DELAY = 100 * 366 * 24 * 60 * 60 * 1000


class Within(NamedTuple):
    """The least and the greatest value of an integer."""

    least: int
    most: int

    @property
    def allowed(self) -> str:
        """The allowed values, for messages and for the page of settings."""
        return f"{self.least} to {self.most}"

    def accepts(self, value: object) -> bool:
        """Return whether a value is allowed."""
        return isinstance(value, int) and self.least <= value <= self.most


class Form(NamedTuple):
    """A text that a function accepts.

    Attributes:
        is_secret: whether the text contains a password, which is never shown.
    """

    allowed: str
    function: Callable[[str], bool]
    is_secret: bool = False

    def accepts(self, value: object) -> bool:
        """Return whether a value is allowed."""
        return isinstance(value, str) and self.function(value)


Rule = Within | Form


class Effect(Enum):
    """When a new value of a setting takes effect; each field of the settings declares it."""

    NOW = "now"
    """In a running broker, once `updateBrokerConfig` is answered."""
    RESTART = "restart"
    """At the next start of the broker; a running one refuses the change."""


T = TypeVar("T")
Now = Annotated[T, Effect.NOW]
"""A setting of this type that takes effect at once."""
Restart = Annotated[T, Effect.RESTART]
"""A setting of this type that takes effect at a restart."""


def delete_hours(text: str) -> frozenset[int]:
    """Return the hours of `deleteWhen`; none if the text is not a list of hours, 0 to 23."""
    # As in Java, separators at the end mean nothing.
    parts = [_HOUR.fullmatch(part) for part in text.rstrip("; ").split(";")]
    hours = frozenset(int(part[1]) for part in parts if part is not None)
    is_good = None not in parts and max(hours) < _HOURS_A_DAY
    return hours if is_good else frozenset()


def _are_hours(text: str) -> bool:
    return bool(delete_hours(text))


def _is_delays(text: str) -> bool:
    try:
        levels = parse_delay_levels(text)
    except FormatError:
        return False
    return len(levels) <= _MOST_LEVELS and max(levels) <= _LONGEST_DELAY


def _is_ip_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return "%" not in text


def _is_ip_address_or_empty(text: str) -> bool:
    return not text or _is_ip_address(text)


def networks(text: str) -> list[IPv4Network | IPv6Network]:
    """Return the networks of a list such as "10.0.0.7;10.1.0.0/16".

    Raises:
        ValueError: a part is neither an address nor a network.
    """
    parts = (part.strip() for part in text.split(";"))
    return [ip_network(part) for part in parts if part]


def _are_networks(text: str) -> bool:
    try:
        networks(text)
    except ValueError:
        return False
    return len(text) <= _LONGEST_LIST


def _is_name(text: str) -> bool:
    """Return whether a name can be part of a topic's name, and be stored with every message."""
    data = text.encode("utf-8", "replace")
    is_printable = text.isprintable() and bool(text.strip())
    return is_printable and len(data) <= _LONGEST_NAME and is_safe_topic(data)


def _is_label(text: str) -> bool:
    return bool(text.strip()) and text.isprintable() and len(text.encode()) <= _LONGEST_NAME


def _is_list(text: str) -> bool:
    return text.isprintable() and len(text) <= _LONGEST_LIST


def _are_labels(text: str) -> bool:
    pairs = [pair.partition(":") for pair in text.split(",")] if text else []
    is_good = all(_LABEL.fullmatch(name) and colon and value for name, colon, value in pairs)
    return is_good and text.isprintable() and len(text) <= _LONGEST_LIST


def _are_headers(text: str) -> bool:
    try:
        headers(text)
    except ValueError:
        return False
    return len(text) <= _LONGEST_LIST


def _is_target(text: str) -> bool:
    address = re.sub("^https?://", "", text)
    return not text or ("/" not in address and _is_address(address))


def _is_path(text: str) -> bool:
    if not text.strip() or "\0" in text or len(text) > _LONGEST_PATH:
        return False
    try:
        Path(text).expanduser()
        text.encode("utf-8", "surrogateescape")
    except (
        RuntimeError,
        UnicodeEncodeError,
    ):  # The path names the home of a user that does not exist.
        return False
    return True


def _is_path_or_empty(text: str) -> bool:
    return not text or _is_path(text)


def _is_listened_on(text: str) -> bool:
    return not text or _is_ip_address(text) or _ADDRESS.fullmatch(f"{text}:1") is not None


def _are_addresses(text: str) -> bool:
    parts = [part.strip() for part in text.split(";") if part.strip()]
    return len(text) <= _LONGEST_LIST and all(map(_is_address, parts))


def _is_address(text: str) -> bool:
    found = _ADDRESS.fullmatch(text)
    return found is not None and 0 < int(found[2]) <= LAST_PORT and text.isprintable()


INT_MAX = 2**31 - 1
"""The greatest value of upstream's settings: Java's `int`."""
_DAY = 24 * 60 * 60 * 1000

Interval = Annotated[int, Within(1, _DAY)]
"""Milliseconds from one time to the next."""
Pause = Annotated[int, Within(0, _DAY)]
"""Milliseconds; 0 is allowed."""
Timeout = Annotated[int, Within(1, _DAY // 24)]
"""The maximum of milliseconds to wait."""
Percent = Annotated[int, Within(0, 100)]
Port = Annotated[int, Within(0, LAST_PORT)]
FileSize = Annotated[int, Within(256, INT_MAX)]
Pages = Annotated[int, Within(0, 1_000_000)]
Count = Annotated[int, Within(1, INT_MAX)]
CountOrNone = Annotated[int, Within(0, INT_MAX)]

Hours = Annotated[str, Form('hours of the day, 0 to 23, such as "04;16"', _are_hours)]
Delays = Annotated[
    str,
    Form('at most 1000 delays of at most 100 years, such as "1s 5s 1m 2h 1d"', _is_delays),
]
IPAddress = Annotated[str, Form("an IP address", _is_ip_address)]
IPAddressOrEmpty = Annotated[str, Form("an IP address, or nothing", _is_ip_address_or_empty)]
Networks = Annotated[
    str, Form('IP addresses and networks, several separated by ";"', _are_networks)
]
Name = Annotated[
    str, Form(f"1 to {_LONGEST_NAME} bytes of printable text without slashes", _is_name)
]
Label = Annotated[str, Form(f"1 to {_LONGEST_NAME} bytes of printable text", _is_label)]
PathText = Annotated[str, Form("a path", _is_path)]
PathOrEmpty = Annotated[str, Form("a path, or nothing", _is_path_or_empty)]
ListenAddress = Annotated[str, Form("an IP address or host name, or nothing", _is_listened_on)]
Addresses = Annotated[str, Form('"host:port", several separated by ";"', _are_addresses)]

MetricLabels = Annotated[str, Form('"name:value", several separated by ","', _are_labels)]
MetricHeaders = Annotated[
    str, Form('"name:value", several separated by ","', _are_headers, is_secret=True)
]
MetricsTarget = Annotated[
    str, Form('"host:port", or "http://host:port" without TLS, or nothing', _is_target)
]
MetricsExporter = Literal["DISABLE", "PROM", "OTLP_GRPC", "LOG"]
Texts = Annotated[str, Form('printable text, several parts separated by ";"', _is_list)]


def check(settings: msgspec.Struct) -> None:
    """Check the value of every setting that has a rule.

    Raises:
        StoreError: one line with the setting, its value, and the allowed values.
    """
    for name, rule in rules(type(settings)).items():
        value = getattr(settings, name)
        if not rule.accepts(value):
            raise refusal(type(settings), name, value)


def shown(settings: msgspec.Struct) -> str:
    """Return settings for `repr`, without passwords."""
    kind = type(settings)
    values = (
        f"{name}={'…' if name in secrets(kind) else repr(getattr(settings, name))}"
        for name in settings.__struct_fields__
    )
    return f"{kind.__name__}({', '.join(values)})"


def refusal(kind: type[msgspec.Struct], name: str, value: object) -> StoreError:
    """Return the error for an invalid value of an attribute's setting."""
    encoded = encoded_name(kind, name)
    if name in secrets(kind):
        return StoreError(f"setting {encoded}: its value is not allowed: use {allowed(kind, name)}")
    is_short = not isinstance(value, int) or abs(value) < 10**_LONGEST_SHOWN
    text = repr(value) if is_short else "a number with many digits"
    if len(text) > _LONGEST_SHOWN:
        text = f"{text[:_LONGEST_SHOWN]}…"
    return StoreError(f"setting {encoded}: {text} is not allowed: use {allowed(kind, name)}")


def encoded_name(kind: type[msgspec.Struct], name: str) -> str:
    """Return the name that an attribute has in `broker.conf`."""
    return next(f.encode_name for f in msgspec.structs.fields(kind) if f.name == name)


def allowed(kind: type[msgspec.Struct], name: str) -> str:
    """Return the allowed values of an attribute's setting, in words."""
    rule = rules(kind).get(name)
    hint = _hints(kind)[name]
    if get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    if rule is not None:
        return rule.allowed
    if hint is bool:
        return "true or false"
    if isinstance(hint, type) and issubclass(hint, Enum):
        return " or ".join(str(value.value) for value in hint)
    if get_origin(hint) is Literal:
        return " or ".join(get_args(hint))
    return "a text" if hint is str else "a whole number"


@cache
def rules(kind: type[msgspec.Struct]) -> dict[str, Rule]:
    """Return the rules of a kind of settings by attribute."""
    found: dict[str, Rule] = {}
    for name, hint in _hints(kind).items():
        rule = next((part for part in get_args(hint) if isinstance(part, (Within, Form))), None)
        if get_origin(hint) is Annotated and rule is not None:
            found[name] = rule
    return found


@cache
def secrets(kind: type[msgspec.Struct]) -> frozenset[str]:
    """Return the attributes of settings that contain passwords."""
    found = rules(kind).items()
    return frozenset(name for name, rule in found if isinstance(rule, Form) and rule.is_secret)


@cache
def effects(kind: type[msgspec.Struct]) -> dict[str, Effect]:
    """Return when each setting takes effect, by attribute."""
    return {
        name: part
        for name, hint in _hints(kind).items()
        for part in get_args(hint)
        if isinstance(part, Effect)
    }


@cache
def _hints(kind: type[msgspec.Struct]) -> dict[str, object]:
    return get_type_hints(kind, include_extras=True)
