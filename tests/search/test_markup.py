"""Markdown is removed from snippets; what only looks like it stays."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klsa_search.search.snippets import folded, without_markup


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("# Pumps\n\nThey **leak**.", "Pumps They leak."),
        ("## Ink ##\nReplace `it`.", "Ink Replace it."),
        ("```\nmake ink\n```", "make ink"),
        ("See [parts](parts.md), ![a pump](p_(1).png).", "See parts, a pump."),
        ('A [part](x "The title") and [cut](https://exam…', "A part and cut"),
        ("| Name | Price |\n|---|--:|\n| Pump | 12 |", "Name Price Pump 12"),
        ("Name | Price\nPump | 12", "Name Price Pump 12"),
        ("- one\n- two", "- one - two"),
        # Not Markdown:
        ("C# is #1, press # to call", "C# is #1, press # to call"),
        ("f(*args, **kwargs) and g(**kwargs)", "f(*args, **kwargs) and g(**kwargs)"),
        ("2**3 and a ** b ** c", "2**3 and a ** b ** c"),
        ("ls | wc", "ls | wc"),
        ("a[1](2) and [a] (b)", "a[1](2) and [a] (b)"),
    ],
)
def test_worked_examples(text, shown):
    assert without_markup(folded(text)) == shown


@given(st.text("ab #*`|[]()-!…\n\f.\\", max_size=60))
def test_words_stay_and_lines_end(text):
    shown = without_markup(folded(text))
    assert "\n" not in shown
    assert "\f" not in shown
    assert "`" not in shown
    assert shown == " ".join(shown.split())
    if not set(text) & set("[("):
        assert [c for c in shown if c in "ab"] == [c for c in text if c in "ab"]
