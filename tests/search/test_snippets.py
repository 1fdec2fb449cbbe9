import pytest
from hypothesis import given
from hypothesis import strategies as st

from klsa_search.analysis import Analyzer
from klsa_search.core.build_settings import AnalysisSettings
from klsa_search.search.snippets import snippet

ANALYZER = Analyzer()
FILLER = "lorem ipsum dolor sit amet consectetur adipiscing elit sed do "
words = st.lists(
    st.sampled_from(["wing", "wings", "flow", "漢字", "ﬁx", "…", "\n", "z" * 30, "of"])
)


def passage(text, query, **options):
    return snippet(text, set(ANALYZER.terms(query)), ANALYZER, **options)


@given(words, st.integers(1, 60))
def test_passage_is_short_and_from_the_text(parts, length):
    text = " ".join(parts)
    found = passage(text, "flow", length=length)
    line = " ".join(text.split())
    assert len(found) <= length + 2
    # Ellipses at the ends may be ours or the text's own.
    assert found.removeprefix("…").removesuffix("…").strip() in line
    if len(line) <= length:
        assert found == line


@pytest.mark.parametrize(
    ("text", "query", "length", "found"),
    [
        ("", "wing", 20, ""),
        ("  a\n\n b\t", "wing", 20, "a b"),
        ("alpha beta gamma delta", "", 12, "alpha beta…"),
        ("alpha beta gamma delta", "unknown", 12, "alpha beta…"),
        ("alpha beta gamma delta", "delta", 12, "…gamma delta"),
        ("alpha beta gamma delta epsilon zeta", "gamma", 12, "…gamma delta…"),
        ("漢字検索漢字検索漢字検索", "", 4, "漢字検索…"),
    ],
)
def test_worked_examples(text, query, length, found):
    assert passage(text, query, length=length) == found


@given(st.text("ab'’.+#-C \u0301½\u0345雪が降るﾊﾞ\u0308İﬁ1\u200d😀.NETc++¨…\ud800"), st.booleans())
@pytest.mark.parametrize("language", ["english", "de,en"])
def test_words_are_found_as_the_analysis_of_the_text_finds_them(language, text, symbols):
    analyzer = Analyzer(AnalysisSettings(language=language, symbols=symbols))
    tokens = [(token.term, token.start, token.end) for token in analyzer.tokens(text)]
    some = {term for term, _, _ in tokens[::2]}
    assert analyzer.occurrences(text, some) == [token for token in tokens if token[0] in some]


@pytest.mark.parametrize("text", ["…wing flow…", "…Flügel, “wings”…", "…日本語の検索…"])
def test_words_of_passages_are_found_without_tokens(monkeypatch, text):
    some = {"wing", "flugel", "検索"} & {token.term for token in ANALYZER.tokens(text)}
    monkeypatch.setattr(Analyzer, "tokens", None)
    assert {term for term, _, _ in ANALYZER.occurrences(text, some)} == some != set()


def test_different_terms_beat_repeated_ones():
    text = f"wing wing wing {FILLER * 6} wing flow {FILLER * 6}"
    found = passage(text, "wing flow", length=60)
    assert "wing flow" in found
    assert found.startswith("…")
    assert found.endswith("…")


def test_dense_beats_sparse_and_early_beats_late():
    text = f"{FILLER * 3} flow {FILLER * 5} flows of flow {FILLER * 5} flowing flow {FILLER * 5}"
    assert "flows of flow" in passage(text, "flow", length=80)


def test_weights_decide():
    text = f"wing {FILLER * 6} flow {FILLER * 6}"
    assert "wing" in passage(text, "wing flow", length=60)
    assert "flow" in passage(text, "wing flow", length=60, weights={"wing": 0.5, "flow": 4.0})


def test_offsets_survive_characters_that_normalise_to_more():
    text = "ﬃ… ½ " * 40 + "the Flow " + FILLER * 6
    assert "the Flow" in passage(text, "flow", length=60)


TEXT = (
    "# Pumps\n\nThe pump of the **first** floor leaks. It was bought by J. Smith in 1990. "
    "The hose is worn, as 3.5 bar is too much!\n\n- Noise at night\n- Heat\n\n"
    "A wrapped sentence goes\nOn here. 漢字検索。全文検索。"
)


@pytest.mark.parametrize(
    ("query", "length", "found"),
    [
        ("floor", 50, "The pump of the first floor leaks."),
        ("bought", 45, "It was bought by J. Smith in 1990."),
        (
            "bought",
            90,
            "It was bought by J. Smith in 1990. The hose is worn, as 3.5 bar is too much!",
        ),
        ("worn", 20, "The hose is worn, as…"),
        ("bar", 20, "…3.5 bar is too much!"),
        ("night", 20, "- Noise at night"),
        ("wrapped", 36, "A wrapped sentence goes On here."),
        ("字検", 6, "漢字検索。"),
        ("全文", 6, "全文検索。"),
    ],
)
def test_whole_sentences_are_shown_if_they_fit(query, length, found):
    assert passage(TEXT, query, length=length) == found


def test_cuts_fall_between_words():
    found = passage(FILLER * 3 + "wing " + FILLER * 3, "wing", length=80)
    assert set(found.strip("…").split()) <= set(FILLER.split()) | {"wing"}


def test_a_long_text_is_read_to_its_end():
    assert passage(FILLER * 1000 + "wing", "wing").endswith("wing")
    assert passage(" " * 20_000 + "wing", "wing") == "wing"
    assert passage("wing" + " " * 20_000, "wing") == "wing"


def test_a_word_longer_than_the_passage_is_cut():
    word = "x" * 200
    plain = " ".join(["a" * 50, word, "b" * 50])
    found = snippet(plain, {word}, ANALYZER, length=40)
    assert found == f"…{'x' * 40}…"
