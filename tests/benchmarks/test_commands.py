import re

import pytest

from tests.benchmarks.commands import NOT_OURS, ROOT, commands, run

pytestmark = pytest.mark.slow

COMMAND = re.compile(r"python -m ((?:benchmarks|studies)[\w.]*\w)([^`\n#]*)")
OPTION = re.compile(r"--[a-z][a-z-]*")
FINISHED = re.compile(r"```sh\ngit worktree add .*?```", re.DOTALL)
"""Commands of studies that are no more, to be run from a commit that has them."""


def helped(module, capsys, *parts):
    with pytest.raises(SystemExit) as left:
        run(module, *parts, "--help")
    assert left.value.code == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("module", [name for name in commands() if name not in NOT_OURS])
def test_every_command_says_how_it_is_used(module, capsys):
    assert "usage:" in helped(module, capsys).lower()


def written():
    """Commands that documents and modules name: (where, module, options)."""
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
    for folder in ("benchmarks", "studies", "klsa_search"):
        pages += ROOT.glob(f"{folder}/**/*.py")
    for page in sorted(pages):
        text = FINISHED.sub("", page.read_text(encoding="utf-8"))
        for module, rest in COMMAND.findall(text):
            yield page.relative_to(ROOT), module, OPTION.findall(rest)


def test_commands_that_are_written_down_exist():
    told = list(written())
    assert len(told) > 40
    assert not [(page, module) for page, module, _ in told if module not in commands()]


PARTS = {"benchmarks.corpora": ("generate", "queries"), "benchmarks.peers": ("run", "plot")}
"""Commands whose options stand in the help of their parts."""


def test_options_that_are_written_down_exist(capsys):
    helps, strange = {}, []
    for page, module, options in written():
        if module in NOT_OURS:
            continue
        if module not in helps:
            helps[module] = helped(module, capsys)
            for part in PARTS.get(module, ()):
                helps[module] += helped(module, capsys, part)
        strange += [(page, module, option) for option in options if option not in helps[module]]
    assert not strange
