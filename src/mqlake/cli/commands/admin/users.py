"""`mqlake admin`: users of brokers."""

from __future__ import annotations

from typing import Annotated

import typer

from mqlake.cli import options as shared
from mqlake.cli.commands.admin import arguments as given
from mqlake.cli.commands.admin.arguments import DEFAULT_NAMES, run
from mqlake.cli.options import UsageError

_PASSWORD = "MQLAKE_USER_PASSWORD"  # noqa: S105 (a name)

User = Annotated[str, typer.Option("-u", "--username", metavar="USER", help="Name of the user.")]
Password = Annotated[
    str | None,
    typer.Option(
        "-p",
        "--password",
        envvar=_PASSWORD,
        show_envvar=True,
        metavar="TEXT",
        help="Password of the user. Others can read command lines: use the variable.",
    ),
]
UserType = Annotated[
    str | None, typer.Option("-t", "--userType", metavar="TYPE", help="Super or Normal.")
]
Source = Annotated[
    str, typer.Option("-f", "--fromBroker", metavar="BROKER", help="Broker to copy from.")
]
Target = Annotated[
    str, typer.Option("-t", "--toBroker", metavar="BROKER", help="Broker to copy to.")
]


def create_user(
    username: User,
    password: Password = None,
    user_type: UserType = None,
    cluster: given.Cluster = None,
    broker: given.SomeBroker = None,
    names: given.Names = DEFAULT_NAMES,
    json: shared.Json = False,
) -> int:
    """Create a user. Name the brokers with -c or -b."""
    from mqlake.admin import users
    from mqlake.protocol.bodies.auth import UserInfo

    given.one_place(cluster, broker)
    if not password:
        raise UsageError(f"give the password: -p TEXT, or the variable {_PASSWORD}")
    user = UserInfo(username, password, user_type)
    changed = run(names, lambda admin: users.create(admin, user, cluster, broker))
    return given.show_rows("changed", changed, json)


def update_user(
    username: User,
    password: Password = None,
    user_type: UserType = None,
    user_status: Annotated[
        str | None,
        typer.Option("-s", "--userStatus", metavar="STATUS", help="enable or disable."),
    ] = None,
    cluster: given.Cluster = None,
    broker: given.SomeBroker = None,
    names: given.Names = DEFAULT_NAMES,
    json: shared.Json = False,
) -> int:
    """Change the password, the type or the status of a user. Name the brokers with -c or -b."""
    from mqlake.admin import users
    from mqlake.protocol.bodies.auth import UserInfo

    given.one_place(cluster, broker)
    if not (password or user_type or user_status):
        raise UsageError("give what to change: -p TEXT, -t TYPE or -s STATUS")
    user = UserInfo(username, password, user_type, user_status)
    changed = run(names, lambda admin: users.update(admin, user, cluster, broker))
    return given.show_rows("changed", changed, json)


def delete_user(
    username: User,
    cluster: given.Cluster = None,
    broker: given.SomeBroker = None,
    names: given.Names = DEFAULT_NAMES,
    json: shared.Json = False,
) -> int:
    """Delete a user and its permissions. Name the brokers with -c or -b."""
    from mqlake.admin import users

    given.one_place(cluster, broker)
    changed = run(names, lambda admin: users.delete(admin, username, cluster, broker))
    return given.show_rows("changed", changed, json)


def get_user(
    username: User,
    cluster: given.Cluster = None,
    broker: given.SomeBroker = None,
    names: given.Names = DEFAULT_NAMES,
    json: shared.Json = False,
) -> int:
    """Show the type and the status of a user. Name the brokers with -c or -b."""
    from mqlake.admin import users

    given.one_place(cluster, broker)
    found = run(names, lambda admin: users.get(admin, username, cluster, broker))
    return given.show_rows("users", found, json)


def list_user(
    text: Annotated[
        str | None,
        typer.Option("-f", "--filter", metavar="TEXT", help="Only names that contain this text."),
    ] = None,
    cluster: given.Cluster = None,
    broker: given.SomeBroker = None,
    names: given.Names = DEFAULT_NAMES,
    json: shared.Json = False,
) -> int:
    """List users. Name the brokers with -c or -b."""
    from mqlake.admin import users

    given.one_place(cluster, broker)
    found = run(names, lambda admin: users.listed(admin, text, cluster, broker))
    return given.show_rows("users", found, json)


def copy_user(
    source: Source,
    target: Target,
    username: Annotated[
        str,
        typer.Option(
            "-u", "--username", metavar="USERS", help="Users, separated by `,`; default: all."
        ),
    ] = "",
    names: given.Names = DEFAULT_NAMES,
    json: shared.Json = False,
) -> int:
    """Copy users from one broker to another. It needs the credentials of the inner user."""
    from mqlake.admin import users

    wanted = [name.strip() for name in username.split(",") if name.strip()]
    copied = run(names, lambda admin: users.copy(admin, source, target, wanted))
    return given.show_names("copied", copied, json)


COMMANDS = {
    "createUser": create_user,
    "updateUser": update_user,
    "deleteUser": delete_user,
    "getUser": get_user,
    "listUser": list_user,
    "copyUser": copy_user,
}
