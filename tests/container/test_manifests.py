"""The container file and the Kubernetes manifest agree with each other and with the programs."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import mqlake
from mqlake.broker.settings import FAST_PORT_DISTANCE, BrokerSettings, make_broker_settings
from mqlake.metrics.pages import ProgramPages
from mqlake.store.settings import parse_properties

EXAMPLES = Path(__file__).parents[2] / "examples"
IMAGE = (EXAMPLES / "container" / "Containerfile").read_text()
OBJECTS: list[dict[str, Any]] = list(
    yaml.safe_load_all((EXAMPLES / "container" / "kubernetes.yaml").read_text())
)
VERSIONS = {"ConfigMap": "v1", "Service": "v1", "Deployment": "apps/v1", "StatefulSet": "apps/v1"}
WORKLOADS = [each for each in OBJECTS if each["kind"] in ("Deployment", "StatefulSet")]
STATE = "/var/lib/mqlake"


def of(kind: str, name: str) -> dict[str, Any]:
    (found,) = (
        each for each in OBJECTS if (each["kind"], each["metadata"]["name"]) == (kind, name)
    )
    return found


def container(workload: dict[str, Any]) -> dict[str, Any]:
    (found,) = workload["spec"]["template"]["spec"]["containers"]
    return found


def ports(workload: dict[str, Any]) -> dict[str, int]:
    return {each["name"]: each["containerPort"] for each in container(workload)["ports"]}


def probes(workload: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, value in container(workload).items():
        if name.endswith("Probe"):
            yield name, value


def settings() -> dict[str, str]:
    """Return what the broker of the manifest is given, in a pod."""
    text = of("ConfigMap", "mqlake-broker")["data"]["broker.conf"]
    arguments = container(of("StatefulSet", "mqlake-broker"))["args"]
    given = parse_properties(text)
    for option, value in itertools.pairwise(arguments):
        if option == "--set":
            name, _, setting = value.partition("=")
            given[name] = setting.replace("$(POD_IP)", "10.0.0.5").replace("$(POD_NAME)", "b-0")
    return given


def test_kinds_have_their_versions() -> None:
    assert {each["kind"]: each["apiVersion"] for each in OBJECTS} == VERSIONS


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda each: each["metadata"]["name"])
def test_selectors_and_ports_exist(workload: dict[str, Any]) -> None:
    name, spec = workload["metadata"]["name"], workload["spec"]
    labels = spec["template"]["metadata"]["labels"]
    service = of("Service", name)["spec"]
    assert spec["selector"]["matchLabels"] == service["selector"] == labels
    for each in service["ports"]:
        assert ports(workload)[each["targetPort"]] == each["port"]
    for _, probe in probes(workload):
        (check,) = (probe[kind] for kind in ("httpGet", "tcpSocket") if kind in probe)
        assert check["port"] in ports(workload)
    assert set(container(workload)["resources"]) == {"requests", "limits"}


def test_mounts_have_volumes() -> None:
    spec = of("StatefulSet", "mqlake-broker")["spec"]
    assert spec["serviceName"] == "mqlake-broker"
    claims = {each["metadata"]["name"] for each in spec["volumeClaimTemplates"]}
    volumes = {each["name"]: each for each in spec["template"]["spec"]["volumes"]}
    mounts = {
        each["name"]: each for each in container(of("StatefulSet", "mqlake-broker"))["volumeMounts"]
    }
    assert set(mounts) == claims | set(volumes)
    assert mounts["store"]["mountPath"] == STATE
    of("ConfigMap", volumes["settings"]["configMap"]["name"])


def test_the_broker_takes_its_settings_and_listens_where_it_is_asked() -> None:
    given = settings()
    assert set(given) <= set(BrokerSettings.__struct_encode_fields__)
    found, listens = make_broker_settings(given), ports(of("StatefulSet", "mqlake-broker"))
    assert str(found.store_path).startswith(f"{STATE}/")
    assert found.listen_address == found.metrics_prom_exporter_host == "0.0.0.0"
    assert listens == {
        "clients": found.listen_port,
        "fast": found.listen_port - FAST_PORT_DISTANCE,
        "slaves": found.listen_port + 1,
        "monitoring": found.metrics_prom_exporter_port,
    }
    name, _, port = found.namesrv_addr.partition(":")
    assert of("Service", name)["spec"]["ports"][0]["port"] == int(port)


def test_probes_ask_for_pages_that_exist() -> None:
    pages = ProgramPages.by_path(ProgramPages.__new__(ProgramPages))
    found = {
        name: probe["httpGet"]["path"] for name, probe in probes(of("StatefulSet", "mqlake-broker"))
    }
    assert set(found.values()) <= set(pages)
    assert found == {
        "startupProbe": "/livez",
        "livenessProbe": "/livez",
        "readinessProbe": "/readyz",
    }


def test_the_image_is_the_manifests() -> None:
    instructions = re.findall(r"^([A-Z]+) ", IMAGE, re.MULTILINE)
    assert instructions[0] == "FROM"
    assert set(instructions) <= {
        *("FROM", "ARG", "RUN", "ENV", "USER", "VOLUME", "EXPOSE", "STOPSIGNAL", "ENTRYPOINT"),
        "CMD",
    }
    (user,) = re.findall(r"^USER (\d+)$", IMAGE, re.MULTILINE)
    assert f"--uid {user} " in IMAGE
    exposed = {int(port) for port in re.findall(r"^EXPOSE (.*)$", IMAGE, re.MULTILINE)[0].split()}
    for workload in WORKLOADS:
        spec = workload["spec"]["template"]["spec"]
        assert spec["securityContext"]["runAsUser"] == int(user)
        assert container(workload)["image"] == f"mqlake:{mqlake.__version__}"
        assert set(ports(workload).values()) <= exposed
    assert f"VOLUME {STATE}\n" in IMAGE
    assert 'ENTRYPOINT ["mqlake"]' in IMAGE


def test_a_pod_has_as_long_to_stop_as_systemd_gives() -> None:
    unit = (EXAMPLES / "service" / "mqlake-broker.service").read_text()
    (seconds,) = re.findall(r"^TimeoutStopSec=(\d+)$", unit, re.MULTILINE)
    spec = of("StatefulSet", "mqlake-broker")["spec"]["template"]["spec"]
    assert spec["terminationGracePeriodSeconds"] == int(seconds)
