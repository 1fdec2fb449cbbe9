"""Convert the docstrings of this project for Sphinx.

Rows of a name, two or more blanks, and a description become a definition list. Indented blocks
stay literal. Examples are doctests, which Sphinx knows.
"""

import inspect
import re

ROW = re.compile(r"(\S+(?: \S+)*?) {2,}(\S.*)")
PAGE = re.compile(r"\bdocs/([\w/-]+)\.md\b")
ARRAY = re.compile(
    r"[\w.~]*ndarray\[tuple\[[^]]*\], [\w.~]*dtype\[(?:~?\w+\.)?(\w+)(?:\[[^]]*\])?\]\]"
)
SIGN = re.compile(r"[*|]|(?<=\w)_(?!\w)")


def restructured(lines):
    """Yield the lines of a docstring as reStructuredText."""
    for block in blocks(lines):
        if block[0].startswith(">>>"):
            yield from block
        elif block[0].startswith(" "):
            yield from ("::", "", *(f"    {line}" for line in block))
        else:
            yield from rows(block)
        yield ""


def blocks(lines):
    """Yield what blank lines part."""
    block = []
    for line in [*lines, ""]:
        if line.strip():
            block.append(line)
        elif block:
            yield block
            block = []


def rows(block):
    """Yield the sentences of a block, and definitions of the names that have a row in it."""
    inside = False
    for number, line in enumerate(block):
        longer = number + 1 < len(block) and block[number + 1].startswith(" ")
        row = ROW.fullmatch(line) or (longer and re.fullmatch(r"(\S+) (.*)", line))
        if row:
            yield from ("", f"``{row[1].strip('`')}``", f"    {escaped(row[2])}")
        elif line.startswith(" "):
            yield f"    {escaped(line.strip())}"
        else:
            yield from ([""] if inside else [])
            yield escaped(line)
        inside = bool(row) or (inside and line.startswith(" "))


def escaped(text):
    """Hide what is a sign of reStructuredText alone, outside of `names`; pages become links."""
    parts = re.split("(`[^`]*`)", text)
    shown = [part if part[:1] == "`" else SIGN.sub(r"\\\g<0>", part) for part in parts]
    return PAGE.sub(r":doc:`/\1`", "".join(shown))


def rewritten(_app, _what, _name, _thing, _options, lines):
    """Put what Sphinx understands in the place of a docstring that it has read."""
    lines[:] = restructured(lines)


def shortened(_app, _what, _name, _thing, _options, signature, returned):
    """Name arrays as they are written, not as NumPy has it."""
    return tuple(text and ARRAY.sub(r"NDArray[\1]", text) for text in (signature, returned))


def not_ours(_app, _what, _name, thing, skip, _options):
    """Leave out what classes inherit from those of Python and scikit-learn."""
    home = getattr(thing, "__module__", None) or ""
    return skip or (inspect.isroutine(thing) and not home.startswith("klsa_search"))


def setup(app):
    """Have Sphinx ask."""
    app.connect("autodoc-process-docstring", rewritten)
    app.connect("autodoc-process-signature", shortened)
    app.connect("autodoc-skip-member", not_ours)
    return {"parallel_read_safe": True}
