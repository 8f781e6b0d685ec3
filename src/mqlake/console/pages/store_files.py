"""The pages of store directories: files, retention, damage, lake tables, archives."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from mqlake.console.access.changes import change, done, needs
from mqlake.console.access.forms import PostedForm
from mqlake.console.access.roles import ConsoleRole
from mqlake.console.commands import admin_line, shell_line
from mqlake.console.page import Listing, listing, page, url
from mqlake.console.page_error import PageError
from mqlake.console.state import cluster_of, console_of
from mqlake.console.stores.archives import archive_facts
from mqlake.console.stores.lake_tables import lake_table_facts
from mqlake.console.stores.planned import Assumed, plans
from mqlake.console.stores.replicas import copy_facts, replication_of
from mqlake.console.stores.slow_values import FoundValue
from mqlake.console.stores.store_broker import broker_of_store
from mqlake.console.stores.store_files import store_facts
from mqlake.errors import MqlakeError

TABS: Final = (
    ("Files", "/store"),
    ("Retention", "/store/retention"),
    ("Verify", "/store/verify"),
    ("Lake tables", "/store/lake"),
    ("Archives", "/store/archives"),
    ("Replicas", "/store/replicas"),
)
_FACTS_AGE: Final = 5.0
_PLAN_AGE: Final = 10.0
_TABLES_AGE: Final = 15.0
_ASSUMED: Final = ("fileReservedTime", "deleteWhen")
_NO_STORE: Final = PageError(
    "This console was started without a store directory",
    "Start it with --store DIR on the machine that has the directory, or start the broker with "
    "--console-port.",
    404,
)


def routes() -> list[BaseRoute]:
    """Return the routes of the section."""
    pages = {
        "/store": _files,
        "/store/retention": _retention,
        "/store/verify": _verify,
        "/store/lake": _lake,
        "/store/archives": _archives,
        "/store/replicas": _replicas,
    }
    admin = ConsoleRole.ADMIN
    return [
        *(Route(path, needs(admin, handler), methods=["GET"]) for path, handler in pages.items()),
        change("/store/verify/start", _start, "store.verify", admin),
        change("/store/verify/cancel", _cancel, "store.verify.cancel", admin),
    ]


def store_of(request: Request, given: str) -> Path:
    """Return the store directory that a parameter names; the first one by default.

    Raises:
        PageError: the console has no such store.
    """
    stores = console_of(request).options.stores
    if not stores:
        raise _NO_STORE
    if not given:
        return stores[0]
    for path in stores:
        if str(path) == given:
            return path
    raise PageError("This console does not show that store directory", status=404)


def _show(request: Request, template: str, path: Path, **values: Any) -> Response:
    stores = [str(each) for each in console_of(request).options.stores]
    return page(
        request,
        template,
        title="Store",
        store=str(path),
        stores=stores,
        tabs=[(name, url(at, store=path)) for name, at in TABS],
        tab=request.url.path,
        **values,
    )


async def _files(request: Request) -> Response:
    path = store_of(request, request.query_params.get("store", ""))
    found = await _facts(request, path)
    segments: Listing | None = None
    if found is not None:
        segments = listing(request, list(reversed(found.value.segments)))
    command = shell_line(["mqlake", "inspect", path])
    return _show(request, "store/files.html", path, found=found, segments=segments, command=command)


async def _facts(request: Request, path: Path) -> FoundValue | None:
    files = console_of(request).files
    return await files.get(("facts", path), _FACTS_AGE, partial(store_facts, path))


async def _retention(request: Request) -> Response:
    path = store_of(request, request.query_params.get("store", ""))
    own = await broker_of_store(cluster_of(request), path)
    given = {
        name: text
        for name in _ASSUMED
        if (text := request.query_params.get(name, "").strip()[:200])
    }
    used = _percent(request.query_params.get("diskUsed", "").strip())
    settings = {**(own.settings if own else {}), **given}
    assumed = Assumed(settings, None, used)
    key = ("plans", path, tuple(sorted(settings.items())), used)
    found = await console_of(request).files.get(key, _PLAN_AGE, partial(plans, path, assumed))
    facts = await _facts(request, path) if found is not None else None
    command = ["mqlake", "retention", path, "--plan"]
    if found is not None:
        known = found.value.settings
        command += ["--set", f"fileReservedTime={known.file_reserved_time}"]
        command += ["--set", f"deleteWhen={known.delete_when}", "--at", found.value.tonight.at]
    if used is not None:
        command += ["--disk-used", used]
    return _show(
        request,
        "store/retention.html",
        path,
        found=found,
        facts=facts,
        files=listing(request, found.value.tonight.files) if found else None,
        broker=own.name if own else None,
        given=given,
        disk_used="" if used is None else used,
        command=shell_line(command),
    )


def _percent(text: str) -> int | None:
    if not text:
        return None
    if not text.isascii() or not text.isdigit() or len(text) > 3 or int(text) > 100:
        raise PageError("The percentage of the disk in use must be a number from 0 to 100")
    return int(text)


async def _verify(request: Request) -> Response:
    path = store_of(request, request.query_params.get("store", ""))
    jobs = console_of(request).jobs
    return _show(
        request,
        "store/verify.html",
        path,
        running=jobs.running,
        last=jobs.last("verify", str(path)),
        command=shell_line(["mqlake", *_arguments(path)]),
    )


def _arguments(path: Path) -> list[str]:
    return ["verify", str(path), "--engine", "local"]


async def _start(request: Request, form: PostedForm) -> Response:
    path = store_of(request, form.text("store"))
    try:
        console_of(request).jobs.start("verify", str(path), _arguments(path))
    except MqlakeError as error:
        raise PageError(str(error), status=409) from None
    return done(request, url("/store/verify", store=path), "The verification has started")


async def _cancel(request: Request, form: PostedForm) -> Response:
    number = form.number("job", "The number of the job", 1, 1 << 31)
    try:
        job = console_of(request).jobs.cancel(number)
    except MqlakeError as error:
        raise PageError(str(error), status=409) from None
    return done(request, url("/store/verify", store=job.subject), "The verification was cancelled")


async def _lake(request: Request) -> Response:
    path = store_of(request, request.query_params.get("store", ""))
    console = console_of(request)
    found: list[FoundValue | None] = []
    for table in console.options.tables:
        find = partial(lake_table_facts, table, console.options.stores)
        found.append(await console.files.get(("table", table), _TABLES_AGE, find))
    return _show(request, "store/lake.html", path, tables=found)


async def _archives(request: Request) -> Response:
    path = store_of(request, request.query_params.get("store", ""))
    console = console_of(request)
    found = [
        await console.files.get(("archive", place), _TABLES_AGE, partial(archive_facts, place))
        for place in console.options.archives
    ]
    return _show(
        request, "store/archives.html", path, archives=found, facts=await _facts(request, path)
    )


async def _replicas(request: Request) -> Response:
    path = store_of(request, request.query_params.get("store", ""))
    cluster, console = cluster_of(request), console_of(request)
    own = await broker_of_store(cluster, path)
    replication = await replication_of(cluster, own) if own is not None else None
    others = [each for each in console.options.stores if each != path]
    copies = [
        await console.files.get(("copy", each), _FACTS_AGE, partial(copy_facts, each))
        for each in others
    ]
    this = await console.files.get(("copy", path), _FACTS_AGE, partial(copy_facts, path))
    return _show(
        request,
        "store/replicas.html",
        path,
        own=own,
        replication=replication,
        this=this,
        copies=copies,
        command=admin_line(request, "haStatus", "-b", own.address if own is not None else "BROKER"),
    )
