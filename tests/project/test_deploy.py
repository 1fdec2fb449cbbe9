"""The files of deploy/ fit the service: its metrics, routes, settings and times."""

import json
import re
import shutil
from collections import Counter
from configparser import ConfigParser
from types import SimpleNamespace

import pytest
import yaml

from klsa_search.cli.serve import serve
from klsa_search.service.admission import Admission
from klsa_search.service.application import ROUTERS
from klsa_search.service.background import PeriodicTask
from klsa_search.service.job_ledger import JobHistory
from klsa_search.service.metrics import Metrics
from klsa_search.service.middleware.clients import Rates
from klsa_search.service.server import DESCRIPTORS, GRACE
from klsa_search.service.settings import PREFIX, ServiceSettings
from klsa_search.storage.repository import ReplicationState
from tests.conftest import ROOT
from tests.support.processes import run

DEPLOY = ROOT / "deploy"
NAME = re.compile(r"\b(?:klsa|process)_[a-z_]+")


def labels_by_metric():
    """The labels that each metric of /metrics is declared with."""
    pools = {"search": Admission()}
    watches = [PeriodicTask("catalog", lambda: None, 1.0)]
    state = ReplicationState("kept", "000001-0.json", 1, "2026-01-01T00:00:00+00:00", 1)
    replications = [
        SimpleNamespace(work=work, state=lambda: state) for work in ("backup", "follow")
    ]
    resources = SimpleNamespace(
        pools=pools,
        jobs=SimpleNamespace(history=lambda: JobHistory(ended=Counter({("files", "failed"): 1}))),
        rates=Rates(1.0),
        watches=watches,
        replications=replications,
        recorder=SimpleNamespace(lost=0, waiting=0),
    )
    metrics = Metrics(resources)
    scope = {"method": "GET", "path": "/search"}
    metrics.observe_request(scope, 200, 0.1)
    metrics.observe_search("klsa", 0.0, 0.1, 0.2, 0.3)
    metrics.observe_write("", failed=True)
    text = metrics.exposition([], "")[0].decode()
    found = {name: set() for name in re.findall(r"^# TYPE (\S+)", text, re.MULTILINE)}
    for name, labels in re.findall(r"^(\w+)(?:\{(.*)\})? \S+$", text, re.MULTILINE):
        found.setdefault(name, set()).update(re.findall(r'(\w+)="', labels))
    return found


def expressions():
    """Every expression of the alerts and of the dashboard."""
    rules = yaml.safe_load((DEPLOY / "prometheus" / "klsa-alerts.yaml").read_text())
    for group in rules["groups"]:
        yield from (rule["expr"] for rule in group["rules"])
    dashboard = json.loads((DEPLOY / "grafana" / "klsa-dashboard.json").read_text())
    for panel in dashboard["panels"]:
        yield from (target["expr"] for target in panel["targets"])
    yield from (
        each["query"]["query"]
        for each in dashboard["templating"]["list"]
        if each["type"] == "query"
    )


def test_alerts_and_dashboard_use_metrics_of_the_service():
    metrics = labels_by_metric()
    used = {name for each in expressions() for name in NAME.findall(each)}
    assert len(used) > 10
    assert used <= metrics.keys()
    own = {"instance", "job"}  # added by Prometheus
    indexes = {name: {"index"} for name in metrics if name.startswith("klsa_index_")}
    indexes["klsa_refits_total"] = {"index", "outcome"}
    for each in expressions():
        for name, matchers in re.findall(r"(\w+)\{([^}]*)\}", each):
            labels = set(re.findall(r"(\w+)[=!]", matchers))
            known = (
                metrics.get(name, set()) | indexes.get(name, set()) | own
            )  # `up` is Prometheus's
            assert labels <= known, each


def test_the_guide_describes_every_metric():
    guide = (ROOT / "docs" / "guides" / "monitoring.md").read_text(encoding="utf-8")
    described = set(re.findall(r"^\| `(klsa_\w+)` \|", guide, re.MULTILINE))
    exposed = {re.sub("_(bucket|count|sum)$", "", name) for name in labels_by_metric()}
    assert {
        name for name in exposed if name.startswith("klsa_") and not name.endswith("_created")
    } <= described


def test_alerts_watch_all_routes_and_statuses():
    expressions_ = list(expressions())
    assert not [each for each in expressions_ if 'route="' in each]
    assert any('status="503"' in each for each in expressions_)
    assert any("klsa_index_writes_failing" in each for each in expressions_)


@pytest.fixture
def unit():
    def read(name):
        parser = ConfigParser(interpolation=None)
        parser.optionxform = str
        parser.read_string((DEPLOY / "systemd" / name).read_text())
        return parser

    return read


def is_setting(variable):
    return variable.removeprefix(PREFIX).lower() in ServiceSettings.model_fields


def test_the_unit_runs_the_service_as_it_is(unit):
    service = unit("klsa-serve.service")["Service"]
    assert service["Type"] == "exec"
    assert int(service["LimitNOFILE"]) >= DESCRIPTORS
    assert service["ExecStart"].endswith("/klsa-serve")
    assert service["ExecReload"] == "/bin/kill -HUP $MAINPID"
    assert int(service["TimeoutStopSec"]) > GRACE
    assert service["UMask"] == "0027"
    variables = re.findall(r"(\w+)=", service["Environment"])
    assert all(map(is_setting, (each for each in variables if each.startswith(PREFIX))))


def test_commands_of_the_service_user_share_its_cache(unit):
    service = unit("klsa-serve.service")["Service"]
    home = f"/var/cache/{service['CacheDirectory']}"
    assert f"HOME={home}" in service["Environment"].split()
    guide = (ROOT / "docs" / "guides" / "deploy.md").read_text(encoding="utf-8")
    assert f"useradd --system --home-dir {home} {service['User']} " in guide


def test_the_manifests_fit_the_service():
    text = (DEPLOY / "kubernetes" / "klsa.yaml").read_text()
    claim, pods, service = yaml.safe_load_all(text)
    spec = pods["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    labels = pods["spec"]["template"]["metadata"]["labels"]
    assert pods["spec"]["selector"]["matchLabels"] == labels == service["spec"]["selector"]
    assert pods["spec"]["replicas"] == 1
    volumes = {each["name"]: each for each in spec["volumes"]}
    assert {each["name"] for each in container["volumeMounts"]} == volumes.keys()
    claimed = volumes["index"]["persistentVolumeClaim"]["claimName"]
    assert claimed == claim["metadata"]["name"]
    assert all(is_setting(each["name"]) for each in container["env"])
    flags = {flag for parameter in serve.params for flag in parameter.opts}
    assert {each for each in container["args"] if each.startswith("--")} <= flags
    paths = {route.path for router in ROUTERS for route in router.routes}
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert container[probe]["httpGet"]["path"] in paths
    pause = int(container["lifecycle"]["preStop"]["exec"]["command"][1])
    assert spec["terminationGracePeriodSeconds"] > pause + GRACE
    assert container["args"][0] == "serve"  # no sample index
    mounted = {each["name"]: each["mountPath"] for each in container["volumeMounts"]}
    keys = next(each["value"] for each in container["env"] if each["name"] == "KLSA_KEYS")
    assert keys.startswith(mounted["keys"])


TESTS = ROOT / "tests" / "project" / "alerts.test.yaml"


@pytest.mark.external
@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
def test_alerts_fire_when_they_should():
    tested = run("promtool", "test", "rules", TESTS)
    assert tested.returncode == 0, tested.stdout + tested.stderr
