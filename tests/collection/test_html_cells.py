"""HTML in the values of fields, and texts that only resemble it."""

import pytest

from klsa_search.collection.text_cleaning import holds_html, text_of_html


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<p class='lead'>Hello&nbsp;<b>world</b> caf&eacute;</p>", "Hello world café"),
        ("R&uuml;ckruf\n  bitte &#8211; AT&amp;T", "Rückruf\n  bitte – AT&T"),
        ("Hallo<br />\nDrucker<br>geht\nnicht", "Hallo\nDrucker\ngeht\nnicht"),
        ("<div>Hi<script>if (a < b) {}</script><style>p {}</style></div>", "Hi"),
        ("<p>one<p>two\nlines<ul><li>a<li>b</ul>", "one\n\ntwo lines\n- a\n- b"),
        ("a < b && c > d in <b>List<int></b> and Map<a>", "a < b && c > d in List<int> and Map<a>"),
        ("Write the <script> tag<br>here", "Write the <script> tag\nhere"),
        ("&lt;p&gt;x&lt;/p&gt;", "<p>x</p>"),
        ("?a=1&copy=2<br>&nonsense;", "?a=1&copy=2\n&nonsense;"),
        ("<!-- hidden --><span style='a:b'>Text</span>", "Text"),
    ],
)
def test_html_becomes_text(html, text):
    assert holds_html(html)
    assert text_of_html(html) == text


@pytest.mark.parametrize(
    "text",
    [
        "a < b && b > c",
        "List<int> and vector<b> x; Map<String, List<a>>",
        "if a <b and c> d",
        "x & y, AT&T; R&D",
        "https://example.org/?a=1&copy=2&lt=3",
        "# Title\n\nA line<br>and another",
        "| a | b |\n|---|---|\n| x<br>y | z |",
        "```\n<p>code</p>\n```",
        "see [the guide](https://example.org)<br>now",
        "<xml><row>1</row></xml>",
        "mail <ann@example.org>",
        "<blockquote>" * 400,
    ],
)
def test_other_texts_stay(text):
    assert text_of_html(text) == text


@pytest.mark.parametrize("piece", ["<a b=c ", "<", "&", "<p a='", "<a ", "</b>", "<b>", "&amp"])
def test_long_texts_are_read_in_linear_work(piece):
    """A pattern that backtracks would not end."""
    text_of_html(f"{piece * 4_000}<br>")
