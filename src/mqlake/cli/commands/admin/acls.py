"""`mqlake admin`: what users may do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from mqlake.cli import options as shared
from mqlake.cli.commands.admin import arguments as given
from mqlake.cli.commands.admin.arguments import DEFAULT_NAMES, run
from mqlake.cli.commands.admin.users import Source, Target

if TYPE_CHECKING:
    from mqlake.admin.acls import Grant

Subject = Annotated[
    str, typer.Option("-s", "--subject", metavar="SUBJECT", help="User:NAME of the user.")
]
Resources = Annotated[
    str,
    typer.Option(
        "-r",
        "--resources",
        metavar="LIST",
        help="Resources, separated by `,`, such as Topic:orders,Group:app-*.",
    ),
]
Actions = Annotated[
    str,
    typer.Option(
        "-a",
        "--actions",
        metavar="LIST",
        help="All, or Pub, Sub, Create, Update, Delete, Get, List, separated by `,`.",
    ),
]
Sources = Annotated[
    str,
    typer.Option(
        "-i",
        "--sourceIp",
        metavar="LIST",
        help="Only from these IP addresses and networks, separated by `,`.",
    ),
]
Decision = Annotated[
    str, typer.Option("-d", "--decision", metavar="DECISION", help="Allow or Deny.")
]


def create_acl(
    subject: Subject,
    resources: Resources,
    actions: Actions,
    sources: Sources = "",
    decision: Decision = "Allow",
    cluster: given.Cluster = None,
    broker: given.SomeBroker = None,
    names: given.Names = DEFAULT_NAMES,
    json: shared.Json = False,
) -> int:
    """Allow or deny a user actions on resources. Name the brokers with -c or -b.

    An entry for the same resource is replaced.
    """
    from mqlake.admin import acls

    given.one_place(cluster, broker)
    grant = _grant(resources, actions, sources, decision)
    changed = run(names, lambda admin: acls.create(admin, subject, grant, cluster, broker))
    return given.show_rows("changed", changed, json)


def update_acl(
    subject: Subject,
    resources: Resources,
    actions: Actions,
    sources: Sources = "",
    decision: Decision = "Allow",
    cluster: given.Cluster = None,
    broker: given.SomeBroker = None,
    names: given.Names = DEFAULT_NAMES,
    json: shared.Json = False,
) -> int:
    """Do the same as createAcl."""
    from mqlake.admin import acls
    from mqlake.protocol.codes import RequestCode

    given.one_place(cluster, broker)
    grant, code = _grant(resources, actions, sources, decision), RequestCode.AUTH_UPDATE_ACL
    changed = run(
        names, lambda admin: acls.create(admin, subject, grant, cluster, broker, code=code)
    )
    return given.show_rows("changed", changed, json)


def delete_acl(
    subject: Subject,
    resource: Annotated[
        str | None,
        typer.Option(
            "-r", "--resources", metavar="RESOURCE", help="Only the entry for this resource."
        ),
    ] = None,
    cluster: given.Cluster = None,
    broker: given.SomeBroker = None,
    names: given.Names = DEFAULT_NAMES,
    json: shared.Json = False,
) -> int:
    """Delete the permissions of a user. Name the brokers with -c or -b."""
    from mqlake.admin import acls

    given.one_place(cluster, broker)
    changed = run(names, lambda admin: acls.delete(admin, subject, resource, cluster, broker))
    return given.show_rows("changed", changed, json)


def get_acl(
    subject: Subject,
    cluster: given.Cluster = None,
    broker: given.SomeBroker = None,
    names: given.Names = DEFAULT_NAMES,
    json: shared.Json = False,
) -> int:
    """Show the permissions of a user. Name the brokers with -c or -b."""
    from mqlake.admin import acls

    given.one_place(cluster, broker)
    found = run(names, lambda admin: acls.get(admin, subject, cluster, broker))
    return given.show_rows("entries", found, json)


def list_acl(
    subject: Annotated[
        str | None,
        typer.Option(
            "-s", "--subject", metavar="TEXT", help="Only subjects that contain this text."
        ),
    ] = None,
    resource: Annotated[
        str | None,
        typer.Option(
            "-r", "--resources", metavar="TEXT", help="Only resources that contain this text."
        ),
    ] = None,
    cluster: given.Cluster = None,
    broker: given.SomeBroker = None,
    names: given.Names = DEFAULT_NAMES,
    json: shared.Json = False,
) -> int:
    """List the permissions of all users. Name the brokers with -c or -b."""
    from mqlake.admin import acls

    given.one_place(cluster, broker)
    found = run(names, lambda admin: acls.listed(admin, subject, resource, cluster, broker))
    return given.show_rows("entries", found, json)


def copy_acl(
    source: Source,
    target: Target,
    subjects: Annotated[
        str,
        typer.Option(
            "-s", "--subjects", metavar="LIST", help="Subjects, separated by `,`; default: all."
        ),
    ] = "",
    names: given.Names = DEFAULT_NAMES,
    json: shared.Json = False,
) -> int:
    """Copy the permissions of users to a broker that has these users."""
    from mqlake.admin import acls

    copied = run(names, lambda admin: acls.copy(admin, source, target, _parts(subjects)))
    return given.show_names("copied", copied, json)


def _grant(resources: str, actions: str, sources: str, decision: str) -> Grant:
    from mqlake.admin.acls import Grant

    return Grant(_parts(resources), _parts(actions), _parts(sources), decision)


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


COMMANDS = {
    "createAcl": create_acl,
    "updateAcl": update_acl,
    "deleteAcl": delete_acl,
    "getAcl": get_acl,
    "listAcl": list_acl,
    "copyAcl": copy_acl,
}
