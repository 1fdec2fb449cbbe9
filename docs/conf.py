"""Makes the site of docs/: `make docs`. Everything that is its own is in docs/site/."""

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE / "site")]

project = "klsa-search"
html_title = project
extensions = ["myst_parser", "sphinx.ext.autodoc", "docstrings", "sections"]
exclude_patterns = ["README.md", "site"]

# As GitHub shows the same pages: its anchors, and no dashes made of the hyphens of options.
myst_enable_extensions = ["alert"]
myst_heading_anchors = 4
smartquotes = False

html_theme = "furo"
html_static_path = ["site/static"]
html_css_files = ["site.css"]
html_copy_source = False
# The box of the site asks the klsa-serve that has its index, as `make docs-serve` starts one, or,
# where there is none, looks words up in the browser.
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
