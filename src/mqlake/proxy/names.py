"""Names of topics and groups in calls (upstream: `GrpcValidator`)."""

from __future__ import annotations

from mqlake.grpc.messages import Code, Resource
from mqlake.protocol import naming
from mqlake.protocol.namespace import Namespace
from mqlake.proxy.errors import StatusError


def topic_of(resource: Resource) -> str:
    """Return the name of a topic on the cluster.

    Raises:
        StatusError: ILLEGAL_TOPIC: it is no name, or a system topic.
    """
    name = _wrapped(resource)
    fault = naming.topic_fault(name)
    if fault is not None:
        raise StatusError(Code.ILLEGAL_TOPIC, fault[:255])
    if naming.is_system_topic(name):
        raise StatusError(Code.ILLEGAL_TOPIC, f"cannot access system topic: {name}")
    return name


def group_of(resource: Resource) -> str:
    """Return the name of a consumer group on the cluster.

    Raises:
        StatusError: ILLEGAL_CONSUMER_GROUP: it is no name, or a system group.
    """
    name = _wrapped(resource)
    fault = naming.group_fault(name)
    if fault is not None:
        raise StatusError(Code.ILLEGAL_CONSUMER_GROUP, fault[:255])
    if name in naming.SYSTEM_GROUPS or name.startswith(naming.SYSTEM_GROUP_PREFIX):
        raise StatusError(Code.ILLEGAL_CONSUMER_GROUP, f"cannot use system consumer group: {name}")
    return name


def _wrapped(resource: Resource) -> str:
    namespace = resource.resource_namespace
    return Namespace(namespace).wrap(resource.name) if namespace else resource.name
