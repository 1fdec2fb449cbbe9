"""The sections of all pages as one collection, `sections.jsonl`, for a search engine: ours.

The id of a section is its address within the site.
"""

import json
from pathlib import Path

from docutils import nodes
from sphinx import addnodes


def sections(app, failure):
    """Write every section, and everything that has a docstring, as one document."""
    if failure:
        return
    lines = []
    for page in sorted(app.env.found_docs):
        tree = app.env.get_doctree(page)
        uri, whole = app.builder.get_target_uri(page), app.env.titles[page].astext()
        for node in tree.findall(lambda node: isinstance(node, nodes.section | addnodes.desc)):
            anchor, title = named(node)
            if anchor is None:  # said on another page
                continue
            first = node.parent is tree
            lines.append(
                {
                    "id": uri if first else f"{uri}#{anchor}",
                    "title": whole if first else f"{whole}: {title}",
                    "text": "\n".join(own_texts(node)),
                }
            )
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    Path(app.outdir, "sections.jsonl").write_text(text, encoding="utf-8")


def named(node):
    """Tell where a section is on its page, and its title."""
    if isinstance(node, nodes.section):
        return node["ids"][0], node[0].astext()
    signature = node[0]
    return next(iter(signature["ids"]), None), signature.get("fullname", signature.astext())


def own_texts(node):
    """Yield the texts of a section that are not those of a section in it."""
    for child in node.children:
        if isinstance(child, nodes.section | addnodes.desc | nodes.title):
            continue
        if isinstance(child, nodes.Text | nodes.TextElement):
            yield child.astext()
        else:
            yield from own_texts(child)


def setup(app):
    """Have Sphinx ask once all pages are written."""
    app.connect("build-finished", sections)
    return {"parallel_read_safe": True}
