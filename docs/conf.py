"""Sphinx configuration of the site of docs/ (`make docs`); extensions are in docs/site/."""

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE / "site")]

project = "klsa-search"
html_title = project
extensions = ["myst_parser", "sphinx.ext.autodoc", "docstrings", "sections"]
exclude_patterns = ["README.md", "site"]

# As on GitHub: the same anchors and alerts, and no dashes made of the hyphens of options.
myst_enable_extensions = ["alert"]
myst_heading_anchors = 4
smartquotes = False

html_theme = "furo"
html_static_path = ["site/static"]
html_css_files = ["site.css"]
html_copy_source = False
# The search box queries the klsa-serve that has the index of the site, as `make docs-serve` starts
# one. Without one it searches in the browser.
html_js_files = [("search.js", {"data-service": os.environ.get("KLSA_DOCS_SERVICE", "")})]

default_role = "py:obj"
add_module_names = False
maximum_signature_line_length = 80
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autodoc_default_options = {
    "members": True,
    "imported-members": True,
    "inherited-members": True,
}
