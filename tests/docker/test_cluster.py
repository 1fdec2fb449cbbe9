"""The files of docker/cluster are valid and agree with each other.

The tests need neither Docker nor Kubernetes and start no containers.
"""

import json
import re
import shlex
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml
from packaging.specifiers import SpecifierSet

from klsa_search.cli.index import klsa_index
from klsa_search.cli.keys import klsa_keys
from klsa_search.cli.serve import serve as klsa_serve
from klsa_search.service.settings import PREFIX, ServiceSettings
from tests.conftest import ROOT
from tests.docker.test_image import instructions
from tests.project.test_packaging import PROJECT
from tests.support.processes import run

pytestmark = pytest.mark.external

FOLDER = ROOT / "docker" / "cluster"
COMMANDS = {"klsa-index": klsa_index, "klsa-keys": klsa_keys, "klsa-serve": klsa_serve}
IMAGE = dict(instructions())
PAGE = ROOT / "docs" / "guides" / "cluster.md"
TOKENS_SINCE = "2.52.0"  # of Ray


def read(name):
    return list(yaml.safe_load_all((FOLDER / name).read_text()))


COMPOSE = read("compose.yaml")[0]
SERVICES = COMPOSE["services"]
MACHINES = read("machines.yaml")[0]
CLAIM, CLUSTER, FRONT, SERVICE, JOB = (
    each
    for name in ("storage", "cluster", "front", "build")
    for each in read(f"kuberay/{name}.yaml")
)
HEAD = CLUSTER["spec"]["headGroupSpec"]
(GROUP,) = CLUSTER["spec"]["workerGroupSpecs"]
PODS = {
    "head": HEAD["template"]["spec"],
    "worker": GROUP["template"]["spec"],
    "front": FRONT["spec"]["template"]["spec"],
    "build": JOB["spec"]["template"]["spec"],
}


def started():
    """Every command line that one of the files starts, as docker/entrypoint.sh has it run."""
    lines = [each["command"] for each in SERVICES.values()]
    lines += [PODS[each]["containers"][0]["args"] for each in ("front", "build")]
    for line in lines:
        if line[0] == "join":
            line = line[2:]
        yield {"serve": ["klsa-serve"], "build": ["klsa-index", "build"]}.get(
            line[0], line[:1]
        ) + line[1:]
    for line in MACHINES["head_start_ray_commands"] + MACHINES["worker_start_ray_commands"]:
        words = shlex.split(line)
        (at,) = [at for at, word in enumerate(words) if word.endswith("/ray")]
        yield ["ray", *words[at + 1 :]]
    for group, head in ((HEAD, ["--head"]), (GROUP, [])):
        yield ["ray", "start", *head, *(f"--{each}" for each in group["rayStartParams"])]


def written(path):
    """Every command of ours that a file tells people to type."""
    text = re.sub(r"\\\n#?", " ", path.read_text())
    for line in re.findall(r"^(klsa-\w+ .*)$", text, re.MULTILINE):
        yield shlex.split(line, comments=True)
    for line in re.findall(r"(?:front|search --) +(join .*|klsa-\w+ .*)$", text, re.MULTILINE):
        words = shlex.split(line.rstrip(")."))
        words = words[2:] if words[0] == "join" else words
        yield ["klsa-index", *words] if words[0] == "build" else words


def options(words):
    """(those of the command, those that are asked of it)."""
    command = COMMANDS[words[0]]
    if words[0] != "klsa-serve":
        command = command.commands[words[1]]
    known = {each for one in command.params for each in (*one.opts, *one.secondary_opts)}
    return known, {word.split("=")[0] for word in words if word.startswith("--")}


def test_compose_reads_them():
    checker = Path(sys.executable).with_name("check-jsonschema")
    files = [FOLDER / "compose.yaml", ROOT / "docker" / "compose.yaml"]
    asked = [checker, "--builtin-schema", "vendor.compose-spec", *files]
    done = run(*asked)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    "made",
    [CLAIM, FRONT, SERVICE, JOB]
    + [
        {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "t"}, "template": each}
        for each in (HEAD["template"], GROUP["template"])
    ],
    ids=["claim", "front", "service", "build", "head", "workers"],
)
def test_kubernetes_reads_them(made):
    checker = pytest.importorskip(
        "kubernetes_validate", reason="kubernetes-validate is not installed"
    )
    checker.validate(made, checker.latest_version(), strict=True)


def test_kuberay_reads_them():
    import jsonschema_rs

    schema = json.loads((Path(__file__).parent / "raycluster.schema.json").read_text())
    jsonschema_rs.validate(schema, CLUSTER)
    for wrong in ({"rayVersoin": "2.60.0"}, {"enableInTreeAutoscaling": "yes"}):
        with pytest.raises(jsonschema_rs.ValidationError):
            jsonschema_rs.validate(schema, CLUSTER | {"spec": CLUSTER["spec"] | wrong})
    # Kubernetes' own parts of it, which its schema has seen in the pods.
    options = CLUSTER["spec"]["autoscalerOptions"]
    (container,) = PODS["head"]["containers"]
    assert options["securityContext"] == container["securityContext"]
    assert options["resources"].keys() == container["resources"].keys()


def test_ray_up_reads_them():
    import jsonschema_rs

    found = find_spec("ray")
    if found is None:
        pytest.skip("Ray is not installed: pip install 'klsa-search[cluster]'")
    schema = Path(found.origin).parent / "autoscaler" / "ray-schema.json"
    jsonschema_rs.validate(json.loads(schema.read_text()), MACHINES)


@pytest.mark.parametrize("words", list(started()), ids=" ".join)
def test_commands_in_manifests_exist(words):
    if words[0] == "ray":
        scripts = pytest.importorskip("ray.scripts.scripts", reason="Ray is not installed")
        command = scripts.cli.commands[words[1]]
        known = {each for one in command.params for each in one.opts}
        asked = {word.split("=")[0] for word in words if word.startswith("--")}
    else:
        known, asked = options(words)
    assert asked <= known


def test_commands_in_the_guide_exist():
    lines = [each for path in (PAGE, *FOLDER.rglob("*.yaml")) for each in written(path)]
    assert {line[0] for line in lines} == COMMANDS.keys()
    for line in lines:
        known, asked = options(line)
        assert asked <= known, line


def variables():
    for service in SERVICES.values():
        yield from service["environment"].items()
    for pod in PODS.values():
        for each in pod["containers"][0].get("env", ()):
            yield each["name"], each.get("value")


def test_variables_are_settings():
    settings = {PREFIX + name.upper() for name in ServiceSettings.model_fields}
    ours = {name for name, _ in variables() if name.startswith(PREFIX)}
    assert ours
    assert ours <= settings
    # Or Kubernetes would make a setting of a Service's name.
    assert not any(pod["enableServiceLinks"] for pod in PODS.values())


def test_everyone_has_the_token():
    for service in SERVICES.values():
        assert service["environment"]["RAY_AUTH_MODE"] == "token"
        assert service["environment"]["RAY_AUTH_TOKEN"].startswith("${RAY_AUTH_TOKEN:?")
    assert CLUSTER["spec"]["authOptions"]["mode"] == "token"
    for name in ("front", "build"):
        env = {each["name"]: each for each in PODS[name]["containers"][0]["env"]}
        assert env["RAY_AUTH_MODE"]["value"] == "token"
        secret = env["RAY_AUTH_TOKEN"]["valueFrom"]["secretKeyRef"]
        assert secret == {"name": CLUSTER["metadata"]["name"], "key": "auth_token"}
    starts = MACHINES["head_start_ray_commands"][1:] + MACHINES["worker_start_ray_commands"][1:]
    assert all(each.startswith("RAY_AUTH_MODE=token ") for each in starts)


def test_all_ask_the_same_head():
    port = "6379"
    assert f"--port={port}" in SERVICES["head"]["command"]
    for name in ("worker-1", "worker-2"):
        assert f"--address=head:{port}" in SERVICES[name]["command"]
    assert SERVICES["front"]["command"][:2] == ["join", f"head:{port}"]
    service = f"{CLUSTER['metadata']['name']}-head-svc"  # as the operator names it
    for name in ("front", "build"):
        assert PODS[name]["containers"][0]["args"][:2] == ["join", f"{service}:{port}"]
    (head,) = PODS["head"]["containers"]
    assert head["ports"][0]["containerPort"] == int(port)
    (worker,) = PODS["worker"]["containers"]
    listens = int(GROUP["rayStartParams"]["node-manager-port"])
    assert worker["ports"][0]["containerPort"] == listens
    for container, open_ in ((head, int(port)), (worker, listens)):
        for probe in ("readinessProbe", "livenessProbe"):
            assert container[probe]["tcpSocket"]["port"] == open_


def test_the_service_and_its_probes_use_the_port_of_the_front():
    (container,) = PODS["front"]["containers"]
    (port,) = container["ports"]
    assert port["containerPort"] == int(IMAGE["EXPOSE"])
    assert SERVICE["spec"]["ports"][0]["targetPort"] == port["name"]
    assert SERVICE["spec"]["selector"] == FRONT["spec"]["selector"]["matchLabels"]
    paths = {
        probe: container[f"{probe}Probe"]["httpGet"]["path"]
        for probe in ("startup", "liveness", "readiness")
    }
    assert paths == {
        "startup": "/health/live", "liveness": "/health/live", "readiness": "/health/ready"
    }  # fmt: skip
    hosts = {entry["name"]: entry.get("value", "") for entry in container["env"]}
    assert SERVICE["metadata"]["name"] in hosts["KLSA_ALLOWED_HOSTS"]
    (published,) = SERVICES["front"]["ports"]
    assert published.startswith("127.0.0.1:")
    assert published.endswith(f":{IMAGE['EXPOSE']}")


def test_all_see_the_same_home():
    for service in SERVICES.values():
        assert f"index:{IMAGE['VOLUME']}" in service["volumes"]
    for name in PODS:
        (volume,) = [each for each in PODS[name]["volumes"] if each["name"] == "data"]
        assert volume["persistentVolumeClaim"]["claimName"] == CLAIM["metadata"]["name"]
        mounted = {
            each["name"]: each["mountPath"] for each in PODS[name]["containers"][0]["volumeMounts"]
        }
        assert Path(mounted["data"]) in Path(IMAGE["VOLUME"]).parents
    assert CLAIM["spec"]["accessModes"] == ["ReadWriteMany"]


def test_all_are_of_one_image():
    assert {each["image"] for each in SERVICES.values()} == {"klsa-search:cluster"}
    (image,) = {pod["containers"][0]["image"] for pod in PODS.values()}
    assert image.endswith("/klsa-search:cluster")
    extras = SERVICES["head"]["build"]["args"]["EXTRAS"]
    assert set(extras.split(",")) <= PROJECT["optional-dependencies"].keys()
    assert ("ARG", "EXTRAS=") in instructions()  # so that the image without it stays small
    context = FOLDER / SERVICES["head"]["build"]["context"]
    assert (context / SERVICES["head"]["build"]["dockerfile"]).samefile(ROOT / "Dockerfile")


def test_ray_is_what_the_extra_asks_for():
    (asked,) = [
        each for each in PROJECT["optional-dependencies"]["cluster"] if each.startswith("ray")
    ]
    version = CLUSTER["spec"]["rayVersion"]
    assert SpecifierSet(asked.removeprefix("ray")).contains(version)
    assert SpecifierSet(f">={TOKENS_SINCE}").contains(version)
    assert any(f"ray[default]=={version}" in each for each in MACHINES["setup_commands"])


def test_containers_do_not_run_as_root_and_have_limits():
    user = int(IMAGE["USER"].split(":")[0])
    for pod in PODS.values():
        assert pod["securityContext"]["runAsUser"] == user
        (container,) = pod["containers"]
        confined = container["securityContext"]
        assert pod["securityContext"].get("runAsNonRoot") or confined["runAsNonRoot"]
        assert not confined["allowPrivilegeEscalation"]
        assert confined["capabilities"] == {"drop": ["ALL"]}
        assert container["resources"]["limits"].keys() == {"cpu", "memory"}
    for service in SERVICES.values():
        assert service["cap_drop"] == ["ALL"]
        assert service["cpus"]
        assert service["mem_limit"]
    assert GROUP["minReplicas"] <= GROUP["replicas"] <= GROUP["maxReplicas"]
