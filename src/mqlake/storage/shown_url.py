"""URLs as messages show them."""

from __future__ import annotations


def shown_url(place: str) -> str:
    """Return a path, or a URL without what may be a secret: user, password and query."""
    scheme, sign, rest = place.partition("://")
    if not sign:
        return place
    host, slash, path = rest.partition("?")[0].partition("/")
    return f"{scheme}{sign}{host.rpartition('@')[2]}{slash}{path}"
