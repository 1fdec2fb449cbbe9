"""Text to clauses: every text parses, and what is not an operator is a word."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from klsa_search.search.query.syntax import is_plain, last_word, parse

FIELDS = {"title", "text", "kind"}
SIGNS = st.text(st.sampled_from("ab \"“”„«»+-*:\\'.(\n\t\0é−＂？~"), max_size=40)


def parsed(text):
    return [(each.sign, each.field, each.kind, each.text) for each in parse(text, FIELDS)]


@pytest.mark.parametrize(
    ("text", "clauses"),
    [
        ('a "b c" d', [("", "", "word", "a"), ("", "", "phrase", "b c"), ("", "", "word", "d")]),
        ("“b c”", [("", "", "phrase", "b c")]),
        ("+a -b", [("+", "", "word", "a"), ("-", "", "word", "b")]),
        ('+"a b" -"c"', [("+", "", "phrase", "a b"), ("-", "", "phrase", "c")]),
        ("title:a", [("", "title", "word", "a")]),
        ('-kind:"a b"', [("-", "kind", "phrase", "a b")]),
        ("+title:net*", [("+", "title", "prefix", "net")]),
        ("(netw*),", [("", "", "prefix", "netw")]),
        ("-.NET +C++", [("-", "", "word", ".NET"), ("+", "", "word", "C++")]),
        *((text, [("", "", "phrase", "b c")]) for text in ("„b c“", "„b c”", "«b c»", "»b c«")),
        ("−a ‐a －a ＋a", [*[("-", "", "word", "a")] * 3, ("+", "", "word", "a")]),
        ("＂b c＂ title：a net＊ c**", [("", "", "phrase", "b c"), ("", "title", "word", "a"),
                                     ("", "", "prefix", "net"), ("", "", "prefix", "c")]),
        (r"\-a \"b\" net\* title\:c", [("", "", "word", word) for word in
                                       ("-a", '"b"', "net*", "title:c")]),
        (r'"a \"b\" c"', [("", "", "phrase", 'a "b" c')]),
    ],
)  # fmt: skip
def test_signs(text, clauses):
    assert parsed(text) == clauses


@pytest.mark.parametrize(
    ("text", "has_sign", "plain"),
    [
        ("a", False, True),
        ("a-b", False, True),
        ("a:b", False, False),
        ("-a", True, False),
        ("title:a", True, False),
        ('"a b"', True, False),
        ("net*", True, False),
        ("net＊", True, False),
        ("«a b»", True, False),
        ("„a b“", True, False),
    ],
)
def test_a_clause_describes_itself(text, has_sign, plain):
    (clause,) = parse(text, FIELDS)
    assert clause.has_sign is has_sign
    assert clause.written == text
    assert is_plain(text) is plain


def test_only_minus_signs_before_a_word_exclude_it():
    assert [is_plain(text) for text in ("−a", "－a", "a − b", "a – b", "1−2")] == [
        *(False, False, True, True, True)
    ]


@pytest.mark.parametrize(
    "text",
    [
        *("wi-fi", "http://x.org/a?b=c", "std::vector", "12:30", "title:", "title: a", "a:b", ":a"),
        *("- a", "a -", "-", "--a", "+ a", "->a", "-$5", "1+1", "a+", "a-", "C:\\temp"),
        *(
            '6"',
            "5'10\"",
            '"open',
            '"a"b',
            'a"b"',
            "**bold**",
            "*args",
            "2*3",
            "foo*bar",
            "*",
            "**",
            *("a » b » c", "„open", "zu»", "–a", "!a", "a?b", "+ «"),
        ),
    ],
)
def test_characters_that_are_not_operators_are_words(text):
    assert parsed(text) == [("", "", "word", word) for word in text.split()]


@given(SIGNS | st.text(max_size=40))
@example('"\\')
def test_any_text_parses(text):
    clauses = parse(text, FIELDS)
    assert sum(len(each.text) for each in clauses) <= len(text)
    assert all(each.shown in text and each.shown.strip() for each in clauses)
    if is_plain(text):
        assert [each.text for each in clauses] == text.split()
        assert not any(each.sign or each.field or each.kind != "word" for each in clauses)


@pytest.mark.parametrize("part", ['"', "\\", '"a', "-", "+", '-"', "a:", "title:", "*", "a*", " *"])
def test_long_texts_take_linear_time(part):
    # A square of these lengths would take minutes.
    text = part * (100_000 // len(part))
    assert parse(text, FIELDS) or part == " "


def test_the_last_word_is_found_in_linear_time():
    assert last_word("x" * 1_000_000 + " ") == ""
    assert last_word("x_" * 500_000 + "y") == "y"
