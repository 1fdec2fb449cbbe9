"""README and quick start, run as they stand: commands, service, page and Python."""

import json
import re
import shlex
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from tests.conftest import ROOT
from tests.support.browsers import open_browser
from tests.support.processes import run
from tests.support.services import clean_environment, served_by
from tests.support.shown import wrong_commands, wrong_examples
from tests.support.waiting import PATIENCE

# In one worker, or both run the commands.
pytestmark = [pytest.mark.smoke, pytest.mark.xdist_group("quick start")]

README = (ROOT / "README.md").read_text(encoding="utf-8")
QUICK_START = (ROOT / "docs" / "quickstart.md").read_text(encoding="utf-8")


def blocks(page, kind):
    return re.findall(rf"^```{kind}\n(.*?)^```", page, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def walked(tmp_path_factory):
    """Return a folder in which the commands of both pages ran, and what they print wrongly."""
    folder = tmp_path_factory.mktemp("clone")
    (folder / "examples").symlink_to(ROOT / "examples")
    (folder / "new.jsonl").write_text(blocks(QUICK_START, "text")[0], encoding="utf-8")
    build = blocks(QUICK_START, "console")[0]
    assert blocks(README, "console")[0].startswith(build)  # so that it runs once
    return folder, wrong_commands(README + QUICK_START.replace(build, ""), folder)


@pytest.fixture(scope="module")
def key(walked):
    """The API key that the quick start creates."""
    (creating,) = re.findall(r"^klsa-keys add .*", QUICK_START, re.MULTILINE)
    made = run(
        *shlex.split(creating, comments=True), cwd=walked[0], env=clean_environment(), check=True
    )
    return made.stdout.strip()


@pytest.fixture(scope="module")
def service(walked, key):
    """The service of the quick start; it ends well."""
    (command,) = re.findall(r"^klsa-serve.*", QUICK_START, re.MULTILINE)
    with served_by(shlex.split(command), walked[0]) as started:
        yield started
        code, printed = started.stop()
    assert code == 0
    assert "Traceback" not in printed


def test_commands_print_what_is_shown(walked):
    assert walked[1] == ""


def test_python_of_the_quick_start_prints_what_is_shown(walked, monkeypatch):
    monkeypatch.chdir(walked[0])
    assert wrong_examples(QUICK_START, "quick start") == ""


def test_python_of_the_readme_finds_the_ticket(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (example,) = blocks(README, "python")
    exec(example, {})
    assert "Late for the birthday" in capsys.readouterr().out


def test_search_over_http_needs_the_key(service, key):
    (line,) = re.findall(r"^curl .*", QUICK_START, re.MULTILINE)
    _, option, header, url = shlex.split(line.replace("$KLSA_KEY", key))
    assert option == "-H"
    url = url.replace("http://127.0.0.1:8000", service.address)
    with pytest.raises(HTTPError, match="401") as refused:
        urlopen(url, timeout=PATIENCE)
    refused.value.close()
    with urlopen(Request(url, headers=dict([header.split(": ")])), timeout=PATIENCE) as response:
        answer = json.load(response)
    shown = blocks(QUICK_START, "text")[1]
    assert f'"query": "{answer["query"]}", "index": "{answer["index"]}"' in shown
    assert f'"total": {answer["total"]},' in shown
    assert f'"hits": [{{"rank": 1, "id": "{answer["hits"][0]["id"]}"' in shown


def test_search_on_the_page(service, key):
    with open_browser() as browser:
        page = browser.new_page()
        page.set_default_timeout(1000 * PATIENCE)
        page.goto(service.address)
        page.locator("#key-value").fill(key)
        page.get_by_role("dialog").get_by_role("button", name="Sign in").click()
        page.get_by_text("Search 115 documents", exact=True).wait_for()
        page.locator("#q").fill("money back")
        page.locator(".hit h2", has_text="Late for the birthday").wait_for()
        assert page.locator(".hit h2").first.inner_text() == "Late for the birthday"
