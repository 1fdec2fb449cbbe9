import re
import sys
from pathlib import Path

import yaml

from tests.conftest import ROOT
from tests.support.processes import run

DOCKERFILE = ROOT / "Dockerfile"


def instructions():
    """(instruction, arguments) of the Dockerfile, continuation lines joined."""
    text = DOCKERFILE.read_text().replace("\\\n", " ")
    lines = [line.split(maxsplit=1) for line in text.splitlines()]
    return [(line[0], line[1]) for line in lines if len(line) == 2 and not line[0].startswith("#")]


def test_hadolint_finds_nothing():
    hadolint = Path(sys.executable).with_name("hadolint")
    result = run(hadolint, DOCKERFILE)
    assert result.returncode == 0, result.stdout + result.stderr


def test_bases_are_pinned_and_the_last_is_slim():
    bases = [arguments.split()[0] for name, arguments in instructions() if name == "FROM"]
    pinned = r"python:\d+\.\d+\.\d+-[\w-]+@sha256:[0-9a-f]{64}"
    assert all(re.fullmatch(pinned, base) for base in bases)
    assert "slim" in bases[-1]


def test_the_image_runs_as_a_fixed_user():
    names = [name for name, _ in instructions()]
    user = dict(instructions())["USER"]
    assert user.split(":")[0].isdigit()
    assert int(user.split(":")[0]) > 0
    assert names.index("USER") < names.index("ENTRYPOINT")


def test_copied_files_exist_and_are_not_ignored():
    ignore = (ROOT / ".dockerignore").read_text().splitlines()
    assert "*" in ignore
    copies = [a.split() for name, a in instructions() if name == "COPY" and "--from=" not in a]
    sources = [word for words in copies for word in words[:-1] if not word.startswith("--")]
    assert sources
    for source in sources:
        assert (ROOT / source).exists()
        assert f"!{source}" in ignore


def test_compose_names_what_the_image_has():
    compose = yaml.safe_load((ROOT / "docker" / "compose.yaml").read_text())
    service = compose["services"]["search"]
    context = ROOT / "docker" / service["build"]["context"]
    assert (context / service["build"]["dockerfile"]).samefile(DOCKERFILE)
    image = dict(instructions())
    volume, target = service["volumes"][0].split(":")
    assert volume in compose["volumes"]
    assert target == image["VOLUME"]
    (port,) = service["ports"]
    assert port.startswith("127.0.0.1:")
    assert port.endswith(f":{image['EXPOSE']}")
