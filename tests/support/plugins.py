"""Packages with plug-ins, installed for one test: written as pip would write them, without it."""

import tomllib

from klsa_search.core import plugins
from klsa_search.search import rankers
from tests.conftest import ROOT

TEMPLATE = ROOT / "examples" / "plugin-template"


def write_package(site, name, version, groups):
    """Write the metadata of a package with entry points: group → name → module:object."""
    folder = site / f"{name.replace('-', '_')}-{version}.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    lines = [
        line
        for group, entries in groups.items()
        for line in (f"[{group}]", *(f"{key} = {value}" for key, value in entries.items()))
    ]
    (folder / "entry_points.txt").write_text("\n".join(lines) + "\n")


def write_template(site):
    """Install the template, without copying its modules; return the paths it needs."""
    project = tomllib.loads((TEMPLATE / "pyproject.toml").read_text("utf-8"))["project"]
    write_package(site, project["name"], project["version"], project["entry-points"])
    return [site, TEMPLATE / "src"]


def use(monkeypatch, *paths):
    """Let this process, and those it starts, find packages in these folders, and forget others."""
    forget()
    for path in paths:
        monkeypatch.syspath_prepend(str(path))
    monkeypatch.setenv("PYTHONPATH", ":".join(map(str, paths)))


def forget():
    """Forget all plug-ins, as a new process would."""
    plugins.entry_points_of.cache_clear()
    plugins.load_plugin.cache_clear()
    rankers.ranker_of_plugin.cache_clear()
