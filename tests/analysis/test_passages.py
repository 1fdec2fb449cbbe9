"""Where texts are cut into passages."""

import doctest
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from klsa_search.analysis import passages as module
from klsa_search.analysis.passages import Passage, cut, heading_of, page_of

WORDS = 12
LARGEST = 18

UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005\u3007\u3040-\u30ff\u31f0-\u31ff"
UNSPACED += "\uac00-\ud7a3\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
UNIT = re.compile(rf"[^\W{UNSPACED}]{{1,32}}|[{UNSPACED}]{{1,2}}|\W{{32}}")


def size(text):
    """Return the words of a text, as `cut` counts them."""
    return len(UNIT.findall(text))


def parts(text, words=WORDS):
    """Return the texts of the passages."""
    return [text[passage.begin : passage.end] for passage in cut(text, words)]


def prose(words, name="w"):
    """Return a sentence of that many words."""
    return " ".join(f"{name}{number}" for number in range(words)) + "."


pieces = st.sampled_from(
    [
        *(
            "one two three four",
            "Five six.",
            " seven",
            "x" * 70,
            "語る。",
            "한국어 ",
            "ไทยไทย",
            "é",
            "e\u0301",
        ),
        *(
            "\n",
            "\n\n",
            " \n\t\n",
            "\r\n",
            "\f",
            "\n# Head\n",
            "\n## Part ##\n\n",
            "### Deep\n",
            "```\n",
        ),
        *(
            "~~~~\n",
            "- item ",
            "\n1. item",
            "| a | b |\n",
            "-" * 40,
            " " * 40,
            "\u200d",
            "_",
            "...",
            "U.S. ",
        ),
    ]
)
texts = st.lists(pieces | st.text(max_size=5), max_size=60).map("".join)


@given(texts, st.integers(3, 20))
@example("\n" * 2000, 12)
@example("-" * 31 + "a " * 18 + "-" * 70, 12)
def test_passages_contain_everything_in_order_within_the_limit(text, words):
    passages = cut(text, words)
    largest = words + words // 2
    at = 0
    for passage in passages:
        assert at <= passage.begin <= passage.end <= len(text)
        assert len(passages) == 1 or not text[at : passage.begin].strip()
        assert passage.page == page_of(text, passage.begin)
        assert passage.heading == heading_of(text, passage.begin)
        at = passage.end
    assert not text[at:].strip()
    if size(text) <= largest:
        assert [passage[:2] for passage in passages] == [(0, len(text))]
    for part in parts(text, words):
        assert size(part) <= largest
        assert parts(part, words) == [part]
        assert len(passages) == 1 or part == part.strip() != ""


@pytest.mark.parametrize("text", ["", "   ", "One.", prose(LARGEST), "語" * 2 * LARGEST])
def test_a_short_text_stays_whole(text):
    assert cut(text, WORDS) == [Passage(0, len(text), "", None)]


def test_parts_have_similar_sizes():
    for words in range(LARGEST + 1, 200):
        sizes = [size(part) for part in parts(prose(words))]
        assert min(sizes) >= WORDS // 2
        assert max(sizes) <= LARGEST


def test_a_passage_ends_before_a_heading():
    sections = [f"# {name}\n\n{prose(9, name)}" for name in ("a", "b", "c")]
    assert parts("\n\n".join(sections)) == sections


def test_small_sections_are_joined_within_their_chapter():
    chapters = [f"# {name}\n\n## x\n\nu v.\n\n## y\n\n{prose(4)}" for name in ("a", "b", "c")]
    assert parts("\n\n".join(chapters)) == chapters


def test_a_heading_stays_with_the_text_below():
    text = "\n\n".join(f"# h{number}\n\n{prose(30)}" for number in range(4))
    assert not [part for part in parts(text) if re.search(r"# h\d\Z", part)]


def test_a_passage_ends_with_its_page():
    pages = [prose(8, "a"), prose(13, "b"), prose(8, "c")]
    text = "\f".join(pages)
    assert parts(text) == pages
    assert [passage.page for passage in cut(text, WORDS)] == [1, 2, 3]


def test_small_pages_are_joined():
    text = "\f".join(prose(4, f"page{number}x") for number in range(6))
    assert [passage.page for passage in cut(text, WORDS)] == [1, 4]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (f"{prose(7)} {prose(6)}\n\n", f"{prose(7)} {prose(5)}"),
        (f"{prose(7)}\n- {prose(6)}\n", f"- {prose(7)} {prose(6)}"),
        (f"{prose(7)}\n10. {prose(6)}\n", f"11. {prose(7)} {prose(6)}"),
        (f"| {prose(7)} | {prose(6)} |\n", f"| {prose(7)} | {prose(5)} |"),
        (f"{prose(14)}\n", f"```\n{prose(12)}\n```"),
        (f"{prose(9)} {prose(4)[:-1]}\n", f"W {prose(7)} {prose(5)}"),
        (f"{prose(5)} {prose(4)[:-1]}\n{prose(3)} ", f"W {prose(7)} {prose(5)}"),
        (f"{prose(13)} ", f"W {prose(12)}"),
        ("語" * 25 + "。」", "語" * 23 + "。"),
        ("語" * 25 + "、", "語" * 25),
        (f"{prose(9)} ", f"W the U.S. Army {prose(9)}"),
    ],
    ids=[
        *("paragraph", "item", "number", "row", "code", "line"),
        *("wrapped", "sentence", "cjk", "pause", "abbreviation"),
    ],
)
def test_the_strongest_boundary_nearby_is_taken(before, after):
    assert parts(before + after)[0] == before.strip()


def test_code_is_cut_between_its_lines():
    code = "\n".join(f"call(a{number}, b.c. D)" for number in range(12))
    for part in parts(f"```\n{code}\n\n```"):
        assert all(line in ("", "```") or line in code.split("\n") for line in part.split("\n"))
        assert part != "```"


def test_text_without_blanks_is_cut_between_characters():
    for text in ("x" * 10_000, "-" * 10_000, "x\u0301" * 5_000, "👩\u200d👧" * 5_000):
        found = parts(text)
        assert "".join(found) == text
        assert len(found) > 5
        assert not [part for part in found if part[0] in "\u0301\u200d" or part[-1] == "\u200d"]


def test_headings_form_a_path():
    text = "\n\n".join(
        [
            prose(12, "before"),
            *("# Installation #", prose(12)),
            *("## Windows", prose(12)),
            *("### Errors", prose(12)),
            *("## C#", f"```\n\n# no heading\n\n{prose(10)}\n```"),
            *("# Use", prose(12)),
        ]
    )
    assert [passage.heading for passage in cut(text, WORDS)] == [
        "",
        "Installation",
        "Installation › Windows",
        "Installation › Windows › Errors",
        "Installation › C#",
        "Use",
    ]


def test_comments_in_code_are_not_headings():
    text = f"# Licence\n# of this file\n\nx = 1\n# of a line\n{prose(30)}\n#!shell\n#hashtag"
    assert {passage.heading for passage in cut(text, WORDS)} == {""}


def test_page_and_heading_of_an_offset():
    text = "# A\n\none\f## B\n\ntwo"
    assert page_of(text, text.index("one")) == 1
    assert page_of(text, text.index("two")) == 2
    assert heading_of(text, text.index("one")) == "A"
    assert heading_of(text, text.index("two")) == "A › B"


def test_examples():
    assert doctest.testmod(module).failed == 0
