"""All families of administrative requests."""

from __future__ import annotations

from mqlake.broker.admin.accounts import AccountAdmin
from mqlake.broker.admin.cold_data import ColdDataAdmin
from mqlake.broker.admin.connections import ConnectionAdmin
from mqlake.broker.admin.consume_stats import ConsumeStatsAdmin
from mqlake.broker.admin.groups import GroupAdmin
from mqlake.broker.admin.maintenance import MaintenanceAdmin
from mqlake.broker.admin.offsets import OffsetAdmin
from mqlake.broker.admin.plain_acl import PlainAclAdmin
from mqlake.broker.admin.queues import QueueAdmin
from mqlake.broker.admin.runtime import RuntimeAdmin
from mqlake.broker.admin.settings import SettingsAdmin
from mqlake.broker.admin.topics import TopicAdmin

ADMIN = (
    TopicAdmin,
    GroupAdmin,
    ConsumeStatsAdmin,
    OffsetAdmin,
    ConnectionAdmin,
    QueueAdmin,
    SettingsAdmin,
    ColdDataAdmin,
    RuntimeAdmin,
    MaintenanceAdmin,
    AccountAdmin,
    PlainAclAdmin,
)
