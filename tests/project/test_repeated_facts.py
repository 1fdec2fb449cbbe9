"""Facts that are written in another language or page as well are the same there."""

import json
import re

from klsa_search.core.progress import PHASES
from klsa_search.storage import catalog
from klsa_search.storage.manifest import FORMAT_VERSION
from tests.conftest import ROOT


def test_the_page_of_the_format_has_its_numbers():
    page = (ROOT / "index" / "README.md").read_text(encoding="utf-8")
    assert page.startswith(f"# The format of an index (version {FORMAT_VERSION})")
    assert f"writes version {FORMAT_VERSION}." in page
    application, version = catalog._APPLICATION, catalog._VERSION  # noqa: SLF001
    assert f"`application_id` 0x{application:X}, `user_version` {version}." in page


def test_the_panel_of_a_refit_has_its_phases():
    script = ROOT / "klsa_search" / "service" / "page" / "admin" / "refit.js"
    [listed] = re.findall(r"const PHASES = (\[.*?\]);", script.read_text(encoding="utf-8"))
    assert json.loads(listed) == [*PHASES]


def test_the_default_loses_on_no_collection_as_the_readme_says():
    figures = json.loads((ROOT / "tests" / "golden" / "map.json").read_text())
    names = {name.partition("-1837")[0] for name in figures}
    readme = (ROOT / "README.md").read_text()
    assert f"[{len(names)} collections]" in readme
    assert "ranks better than BM25 on all [18 collections]" in readme
    rows = json.loads((ROOT / "results" / "collections.json").read_text())["rows"]
    assert rows == [
        [name, f"{row['bm25']:.4f}", f"{row['klsa']:.4f}", gain.replace("-", "−")]
        for name, row in figures.items()
        for gain in [f"{row['klsa'] / row['bm25'] - 1:+.1%}"]
    ]
    assert all(row["klsa"] > row["bm25"] for row in figures.values())


def test_the_readme_says_what_the_default_gains_on_collections():
    rows = json.loads((ROOT / "results" / "kinds.json").read_text(encoding="utf-8"))["rows"]
    gains = {row[0]: row[6:] for row in rows}
    means = [gains.pop(name)[0] for name in list(gains) if name.startswith("mean of")]
    over_bm25, hurt = (
        [float(gain.rstrip("%")) for gain in column] for column in zip(*gains.values(), strict=True)
    )
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert min(over_bm25) > 0
    assert f"by {min(over_bm25):g} to {max(over_bm25):.0f}%." in readme
    assert f"the mean gain on the other seven is {means[1].lstrip('+')}." in readme
    assert f"{min(hurt):.0f} to {max(hurt):.0f}% lose more" in readme


def test_the_guide_says_what_documents_lose_until_a_refit():
    rows = json.loads((ROOT / "results" / "folded-in.json").read_text(encoding="utf-8"))["rows"]
    losses = [-float(row[4].replace("−", "-").rstrip("%")) for row in rows]
    guide = (ROOT / "docs" / "guides" / "update-documents.md").read_text(encoding="utf-8")
    assert f"MAP was {min(losses)} to {max(losses)}% lower on four collections" in guide


def test_sizes_of_installations_are_those_that_were_measured():
    rows = json.loads((ROOT / "results" / "package.json").read_text(encoding="utf-8"))["rows"]
    sizes = {row[0]: int(row[2]) for row in rows}
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"- **{round(sizes['klsa-search'], -1)} MB** installed" in readme
    added = sizes["... with `onnx`"] - sizes["klsa-search"]
    guide = (ROOT / "docs" / "guides" / "vectors.md").read_text(encoding="utf-8")
    assert f"about {round(added, -1)} MB, no PyTorch" in guide
