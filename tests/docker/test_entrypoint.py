import os
import shutil
import signal
import subprocess

import pytest

from tests.conftest import ROOT
from tests.support.waiting import PATIENCE

ENTRYPOINT = ROOT / "docker" / "entrypoint.sh"
COMMANDS = ("klsa-index", "klsa-serve", "klsa-search", "klsa-keys", "klsa-eval", "ray")
SAMPLE = "klsa-index build python-docs --name sample"
SERVE = "klsa-serve"

# Writes down how it was called, and as which process.
STUB = """#!/bin/sh
echo "${0##*/}${*:+ $*}" >> "$CALLS"
echo "$$" > "$CALLS.pid"
"""

pytestmark = pytest.mark.skipif(shutil.which("sh") is None, reason="needs a shell")


def make_command(folder, name, script):
    path = folder / name
    path.write_text(script)
    path.chmod(0o755)


@pytest.fixture
def world(tmp_path):
    """Stub commands first on PATH, a home without indexes, a file of calls."""
    commands = tmp_path / "bin"
    commands.mkdir()
    for name in COMMANDS:
        make_command(commands, name, STUB)
    return World(tmp_path)


class World:
    def __init__(self, folder):
        self.bin = folder / "bin"
        self.home = folder / "a home"
        self.home.mkdir()
        self.calls = folder / "calls"
        self.environment = {
            "PATH": f"{self.bin}{os.pathsep}{os.environ['PATH']}",
            "KLSA_HOME": str(self.home),
            "CALLS": str(self.calls),
        }

    def start(self, *arguments):
        return subprocess.Popen(
            ["sh", ENTRYPOINT, *arguments],
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments):
        """Exit status, stderr and the calls that were made."""
        process = self.start(*arguments)
        _, errors = process.communicate(timeout=120)
        calls = self.calls.read_text().splitlines() if self.calls.exists() else []
        return process.returncode, errors, calls

    def add_index(self):
        (self.home / "mine").mkdir()
        (self.home / "mine" / "CURRENT").write_text("1")


def test_the_entrypoint_is_plain_sh():
    assert ENTRYPOINT.read_text().startswith("#!/bin/sh\n")
    assert os.access(ENTRYPOINT, os.X_OK)
    subprocess.run(["sh", "-n", ENTRYPOINT], check=True, timeout=PATIENCE)


@pytest.mark.parametrize("arguments", [(), ("serve",)])
def test_an_empty_directory_is_served_without_a_sample(world, arguments):
    assert world.run(*arguments) == (0, "", [SERVE])


def test_a_sample_is_built_on_request_and_reported(world):
    status, errors, calls = world.run("sample")
    assert status == 0
    assert calls == [SAMPLE, SERVE]
    assert "No index in" in errors
    assert "sample" in errors


def test_no_sample_is_built_next_to_an_index(world):
    world.add_index()
    assert world.run("sample") == (0, "", [SERVE])


def test_no_sample_is_built_for_a_follower(world):
    world.environment["KLSA_FOLLOW"] = "/backups"
    assert world.run("sample") == (0, "", [SERVE])


def test_an_unfinished_build_does_not_count_as_an_index(world):
    (world.home / "half").mkdir()
    assert world.run("sample")[2] == [SAMPLE, SERVE]


def test_further_options(world):
    world.add_index()
    assert world.run("serve", "--debug", "--port", "9000")[2] == [f"{SERVE} --debug --port 9000"]


def test_the_image_has_the_settings_that_the_commands_read():
    image = (ROOT / "Dockerfile").read_text()
    for setting in ("KLSA_HOME=/data/index", "KLSA_HOST=0.0.0.0"):
        assert f" {setting} " in image
    assert "KLSA_ALLOW_NO_KEYS" not in image[image.index("\nENV ") :]


def test_a_failing_sample_is_not_served(world):
    make_command(world.bin, "klsa-index", f"{STUB}exit 1\n")
    status, _, calls = world.run("sample")
    assert status == 1
    assert calls == [SAMPLE]


def test_build(world):
    expected = ["klsa-index build /files --name mine --b 0.5"]
    assert world.run("build", "/files", "--name", "mine", "--b", "0.5") == (0, "", expected)


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_run_as_given(world, name):
    assert world.run(name, "--help") == (0, "", [f"{name} --help"])


def test_arguments_with_spaces_stay_whole(world):
    make_command(world.bin, "klsa-search", '#!/bin/sh\necho "$#" > "$CALLS"\n')
    assert world.run("klsa-search", "sample", "two words")[2] == ["2"]


JOINED = (
    "ray start --address=head:6379 --num-cpus=0 --object-store-memory=134217728 "
    "--disable-usage-stats"
)


@pytest.mark.parametrize(
    ("asked", "done"),
    [
        (("serve", "--cluster", "auto"), "klsa-serve --cluster auto"),
        (("build", "/sources/a b.jsonl"), "klsa-index build /sources/a b.jsonl"),
        (("klsa-keys", "list"), "klsa-keys list"),
    ],
)
def test_joining_a_cluster_comes_before_what_is_done_there(world, asked, done):
    world.add_index()
    assert world.run("join", "head:6379", *asked) == (0, "", [JOINED, done])


def test_without_a_cluster_none_is_queried(world):
    make_command(world.bin, "ray", f"{STUB}exit 1\n")
    assert world.run("join", "head:6379", "serve") == (1, "", [JOINED])


def test_joining_alone_says_what_it_needs(world):
    status, errors, calls = world.run("join", "head:6379")
    assert (status, calls) == (2, [])
    assert "a command" in errors


@pytest.mark.parametrize("name", ["bash", "Serve", "--port"])
def test_anything_else_is_refused(world, name):
    status, errors, calls = world.run(name)
    assert (status, calls) == (2, [])
    assert f"no command '{name}'" in errors


@pytest.mark.parametrize("arguments", [("serve",), ("build", "x"), ("klsa-eval",)])
def test_the_command_takes_over_the_process(world, arguments):
    world.add_index()
    process = world.start(*arguments)
    process.communicate(timeout=120)
    assert int((world.calls.parent / "calls.pid").read_text()) == process.pid


def test_a_signal_reaches_the_server(world):
    world.add_index()
    serving = '#!/bin/sh\ntrap "exit 7" TERM\necho up\nwhile :; do sleep 0.05; done\n'
    make_command(world.bin, "klsa-serve", serving)
    process = world.start("serve")
    assert process.stdout.readline() == "up\n"
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=120)
    assert process.returncode == 7


def test_a_signal_ends_the_building_of_the_sample(world):
    building = (
        "#!/bin/sh\ntrap 'echo ended >> \"$CALLS\"; exit 0' TERM\n"
        "echo up\nwhile :; do sleep 0.05; done\n"
    )
    make_command(world.bin, "klsa-index", building)
    process = world.start("sample")
    assert process.stdout.readline() == "up\n"
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=120)
    assert process.returncode == 143
    assert world.calls.read_text() == "ended\n"
