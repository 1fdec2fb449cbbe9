"""CI workflows: what they test, and how a release is published."""

import re
import sys
from pathlib import Path

import pytest
import yaml

from tests.project.test_packaging import PROJECT, ROOT
from tests.support.processes import run

FOLDER = ROOT / ".github" / "workflows"
if not FOLDER.is_dir():
    pytest.skip("the workflows are no part of an sdist", allow_module_level=True)


def read(name):
    return yaml.safe_load((FOLDER / name).read_text())


def test_workflows_are_valid():
    checker = Path(sys.executable).with_name("check-jsonschema")
    asked = [checker, "--builtin-schema", "vendor.github-workflows", *FOLDER.iterdir()]
    done = run(*asked)
    assert done.returncode == 0, done.stdout + done.stderr


def steps():
    """(workflow, step) of all steps of all workflows."""
    for path in sorted(FOLDER.iterdir()):
        for job in read(path.name)["jobs"].values():
            yield from ((path.name, step) for step in job.get("steps", []))


def test_workflows_run_targets_of_the_makefile():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    commands = [step["run"].split() for _, step in steps() if "run" in step]
    asked = {command[1] for command in commands if command[0] == "make"}
    asked = {name for each in asked for name in expanded(each)}
    assert "test" in asked
    assert asked <= targets


def expanded(target):
    """Targets that a step of the nightly matrix names."""
    versions = read("nightly.yml")["jobs"]["dependencies"]["strategy"]["matrix"]["versions"]
    place = "${{"
    return [target.partition(place)[0] + each for each in versions] if place in target else [target]


def test_every_action_is_pinned_by_its_commit():
    used = [(name, step["uses"]) for name, step in steps() if "uses" in step]
    assert used
    for name, action in used:
        assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", action), f"{name}: {action}"


def test_every_python_that_is_named_is_tested():
    matrix = read("ci.yml")["jobs"]["test"]["strategy"]["matrix"]["python"]
    named = [
        each.rpartition(" ")[2] for each in PROJECT["classifiers"] if ":: Python :: 3." in each
    ]
    assert matrix == named
    assert PROJECT["requires-python"] == f">={matrix[0]}"


def test_only_tested_builds_of_a_tag_are_published():
    release = read("release.yml")
    jobs = release["jobs"]
    assert release[True] == {"push": {"tags": ["v*"]}}  # what YAML makes of `on`
    assert jobs["ci"] == {"uses": "./.github/workflows/ci.yml"}
    assert jobs["wheels"]["needs"] == "ci"
    assert (jobs["publish"]["needs"], jobs["publish"]["environment"]) == (["ci", "wheels"], "pypi")
    # Only these jobs get tokens, and none is stored.
    assert jobs["publish"]["permissions"] == {"id-token": "write", "attestations": "write"}
    assert (jobs["release"]["needs"], jobs["release"]["permissions"]) == (
        "publish",
        {"contents": "write"},
    )
    assert release["permissions"] == {"contents": "read"}
    assert "secrets" not in (FOLDER / "release.yml").read_text()
