"""Change the files of ACL 1.0, as `mqadmin updateAclConfig` and its relatives ask for.

Comments in a changed file are lost, as they are with RocketMQ.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, cast

from mqlake.auth.plain.accounts import Perm, perm_of
from mqlake.auth.plain.files import PlainFiles, check, load
from mqlake.auth.plain.ip_text import split
from mqlake.errors import FormatError, StoreError
from mqlake.storage.clock import SystemClock
from mqlake.storage.durable import replace_file
from mqlake.storage.local_owned import LocalOwnedDirectory

_MODE: Final = 0o600
_ACCOUNTS: Final = "accounts"
_WHITE: Final = "globalWhiteRemoteAddresses"
_VERSION: Final = "dataVersion"
_TEXTS: Final = ("secretKey", "defaultTopicPerm", "defaultGroupPerm")

Content = dict[str, Any]
"""What a file contains."""


def update_account(files: PlainFiles, fields: Mapping[str, str]) -> None:
    """Add an account, or change what is given of it.

    Args:
        fields: the header fields of the request.

    Raises:
        FormatError: a value is wrong. The message contains no secret key.
        StoreError: a file cannot be read or written.
    """
    key = fields.get("accessKey", "")
    path = _file_of(files, key) or files.main

    def change(content: Content) -> None:
        accounts = _accounts(content)
        old = next((each for each in accounts if _is(each, key)), None)
        others = [each for each in accounts if each is not old]
        content[_ACCOUNTS] = [*others, _changed(old or {}, key, fields)]

    _edit(path, change)


def _changed(old: Content, key: str, fields: Mapping[str, str]) -> Content:
    new = {**old, "accessKey": key}
    new.update({name: fields[name] for name in _TEXTS if fields.get(name)})
    if "whiteRemoteAddress" in fields:
        new["whiteRemoteAddress"] = fields["whiteRemoteAddress"]
    new["admin"] = fields.get("admin", "false").lower() == "true"
    for name in ("topicPerms", "groupPerms"):
        if name in fields:
            new[name] = [_checked(text) for text in split(fields[name], ",")]
    return new


def _checked(text: str) -> str:
    """Return a permission such as "orders=PUB" if it is valid: a file may contain other texts,
    which mean DENY.
    """
    perm = text.partition("=")[2].strip()
    if perm_of(perm) is Perm.DENY and perm != "DENY":
        raise FormatError(f"{text!r}: use name=PUB, SUB, PUB|SUB or DENY")
    return text


def delete_account(files: PlainFiles, key: str) -> bool:
    """Delete an account; return whether it existed.

    Raises:
        StoreError: a file cannot be read or written.
    """
    path = _file_of(files, key)
    if path is None:
        return False

    def change(content: Content) -> None:
        content[_ACCOUNTS] = [each for each in _accounts(content) if not _is(each, key)]

    _edit(path, change)
    return True


def set_white_addresses(files: PlainFiles, texts: list[str], file: str) -> None:
    """Replace the global white list of a file.

    Args:
        file: its path; "" for `plain_acl.yml`.

    Raises:
        FormatError: an address is wrong, or the path is not that of a file with accounts.
        StoreError: the file cannot be read or written.
    """
    path = Path(file) if file else files.main
    if path not in files.paths():
        raise FormatError(f"{str(path)!r} is not a file of ACL 1.0")

    def change(content: Content) -> None:
        content[_WHITE] = texts

    _edit(path, change)


def versions(files: PlainFiles) -> dict[str, dict[str, int]]:
    """Return counter and time of the last change of each file, by its path.

    Raises:
        StoreError: a file cannot be read.
    """
    found: dict[str, dict[str, int]] = {}
    for path in files.paths():
        try:
            found[str(path)] = _version(dict(load(path)))
        except FormatError as error:
            raise StoreError(f"{path}: {error}") from None
    return found


def _version(content: Content) -> dict[str, int]:
    listed = cast("list[Content]", content.get(_VERSION) or [{}])
    return {name: _number(listed[0].get(name)) for name in ("counter", "timestamp")}


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0


def _file_of(files: PlainFiles, key: str) -> Path | None:
    """Return the first file that has an account."""
    for path in files.paths():
        try:
            accounts = _accounts(load(path))
        except FormatError as error:
            raise StoreError(f"{path}: {error}") from None
        if any(_is(each, key) for each in accounts):
            return path
    return None


def _accounts(content: Mapping[str, Any]) -> list[Content]:
    return cast("list[Content]", content.get(_ACCOUNTS) or [])


def _is(account: Content, key: str) -> bool:
    return str(account.get("accessKey")) == key


def _edit(path: Path, change: Callable[[Content], None]) -> None:
    """Change a file, which must be right before and after; return once it is durable."""
    import yaml

    content: Content = dict(load(path)) if path.exists() else {}
    check(content, path)
    change(content)
    content[_VERSION] = [
        {"counter": _version(content)["counter"] + 1, "timestamp": SystemClock().milliseconds()}
    ]
    check(content, path)
    text = yaml.safe_dump(content, allow_unicode=True, sort_keys=False)
    # Others must not be able to read the keys.
    LocalOwnedDirectory.make(path.parent)
    directory = LocalOwnedDirectory(path.parent, file_mode=_MODE)
    replace_file(directory, path.name, text.encode())
