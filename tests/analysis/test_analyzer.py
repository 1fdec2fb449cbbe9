import pickle
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klsa_search.analysis import Analyzer
from klsa_search.analysis import terms as module
from klsa_search.analysis.languages import stop_list, stop_words_of
from klsa_search.analysis.searched_text import AnalysedTexts
from klsa_search.analysis.terms import LONGEST_WORD
from klsa_search.analysis.workers import TermNumbering
from klsa_search.core.build_settings import AnalysisSettings
from klsa_search.core.config import Settings
from klsa_search.errors import SettingsError

ENGLISH = Analyzer()
LONG = Analyzer(AnalysisSettings(stop_words="long"))
PLAIN = Analyzer(AnalysisSettings(language="none"))
FOLDING = Analyzer(AnalysisSettings(language="french", fold_accents=True))
TRICKY = "aS'’s \u00adé\u0301ﬁ①½…漢字ｶﾞไม้हि\u200d_-İßς\ud800\x00🙂한국"
texts = st.one_of(st.text(), st.text(alphabet=TRICKY), st.text(st.characters(codec=None)))


@given(texts, st.sampled_from([ENGLISH, PLAIN, FOLDING]))
def test_terms_are_the_terms_of_the_tokens(text, analyzer):
    assert analyzer.terms(text) == [token.term for token in analyzer.tokens(text)]


@given(texts, st.sampled_from([ENGLISH, PLAIN, FOLDING]))
def test_tokens_lie_in_the_text_in_order(text, analyzer):
    tokens = analyzer.tokens(text)
    assert all(token.term and 0 <= token.start < token.end <= len(text) for token in tokens)
    places = [(token.position, token.start) for token in tokens]
    assert places == sorted(places)
    assert len({token.position for token in tokens}) == len(tokens)


@given(texts)
def test_equal_settings_give_equal_terms(text):
    assert Analyzer().terms(text) == ENGLISH.terms(text)


def test_positions_count_stop_words_and_offsets_point_into_the_text():
    text = "The ﬂow over the wing's edge"
    assert [tuple(token) for token in LONG.tokens(text)] == [
        ("flow", 1, 4, 7),
        ("wing", 4, 17, 23),
        ("edg", 5, 24, 28),
    ]
    assert [text[t.start : t.end] for t in LONG.tokens(text)] == ["ﬂow", "wing's", "edge"]


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("", []),
        ("the of and", []),
        ("... 🙂 \x00\x07 \ud800", ["🙂"]),
        ("Flows flowing FLOWED", ["flow", "flow", "flow"]),
        ("wing's wing’s WING'S", ["wing", "wing", "wing"]),
        ("don't can’t we'll it's", ["don", "can", "we"]),
        ("Hello, the problem of C++", ["hello", "problem", "c++"]),
        ("ＦＵＬＬｗｉｄｔｈ ①", ["fullwidth", "1"]),
        ("so\u00adlution solution", ["solut", "solut"]),
        ("1️⃣ 2", ["1", "2"]),
        ("mach 2.5", ["mach", "2", "5"]),
        ("Lego™ Technic℠s 1½ ¾", ["lego", "technic", "s", "1", "1", "2", "3", "4"]),
        ("Model S", ["model", "s"]),  # an ending to Porter's stemmer
    ],
)
def test_english(text, terms):
    assert ENGLISH.terms(text) == terms


@pytest.mark.parametrize(
    ("settings", "text", "terms"),
    [
        (
            {"language": "none"},
            "The wing's STRASSE Straße",
            "the wing strasse strasse",
        ),
        ({"stop_words": "none"}, "the wing's flows", "the wing flow"),
        ({"stemmer": "none"}, "the flows", "flows"),
        ({"stemmer": "english"}, "generously", "generous"),
        ({"stop_words": "long"}, "don't can’t we'll, the problem of wings", "wing"),
        ({"language": "french", "stop_words": "long"}, "l'avion des chevaux", "avion cheval"),
        ({"language": "german"}, "die Häuser und ein Haus", "die haus und ein haus"),
        ({"language": "german", "stop_words": "long"}, "die Häuser und ein Haus", "haus haus"),
        ({"language": "turkish", "stemmer": "none"}, "ISI İZ", "ısı iz"),
        ({"language": "none", "fold_accents": True}, "Café हिन्दी ไม้", "cafe हिंदी ไม้"),
        ({"language": "none"}, "cafe\u0301 café", "café café"),
        ({"language": "chinese", "stop_words": "long"}, "我们的搜索", "们的 的搜 搜索"),
        ({"language": "greek", "stemmer": "none"}, "ΛΟΓΟΣ λόγος", "λογοσ λογοσ"),
    ],
)
def test_settings(settings, text, terms):
    assert Analyzer(AnalysisSettings(**settings)).terms(text) == terms.split()


def test_overlong_words_are_left_out_but_counted():
    longest = "x" * LONGEST_WORD
    assert PLAIN.terms(f"{longest} {longest}x a") == [longest, "a"]
    assert [token.position for token in PLAIN.tokens(f"{longest}x a")] == [1]
    assert ENGLISH.terms("x" * 1_000_000) == []
    assert ENGLISH.terms("漢" + "\u0301" * 1_000_000) == []


def test_words_of_the_long_list_that_stay_are_common():
    """What is left out and what is common are together the whole list."""
    common = ENGLISH.common()
    assert {"problem", "hello", "don", "c"} <= common
    assert not common & {"", "the", "wing"}
    assert stop_words_of("short", "english") <= stop_list("english")
    assert LONG.common() == PLAIN.common() == frozenset()
    assert Analyzer(AnalysisSettings(stop_words="none")).common() > common
    german = Analyzer(AnalysisSettings(language="german"))
    assert {"die", "und", "ein"} <= german.common()


def test_value():
    assert Analyzer() == Analyzer(AnalysisSettings()) == Analyzer(Settings(k1=2.0))
    assert Analyzer() != PLAIN
    assert Analyzer() != "analyzer"
    assert len({Analyzer(), Analyzer(), PLAIN}) == 2
    again = pickle.loads(pickle.dumps(FOLDING))
    assert again == FOLDING
    assert again.terms("Élèves") == FOLDING.terms("Élèves") == ["elev"]
    assert "french" in repr(FOLDING)


@pytest.mark.parametrize("field", ["language", "stemmer"])
def test_unknown_names(field):
    with pytest.raises(SettingsError, match="unknown") as error:
        Analyzer(AnalysisSettings(**{field: "klingon"}))
    assert error.value.field == field


def test_memory_is_bounded_and_starting_over_changes_nothing(monkeypatch):
    monkeypatch.setattr(module, "CACHED_WORDS", 10)
    small = Analyzer()
    text = " ".join(f"words{i} flows{i % 3}" for i in range(100))
    assert small.terms(text) == ENGLISH.terms(text)
    tracemalloc.start()
    for number in range(5_000):
        small.terms(f"word{number}")
    used = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert used < 20_000, "5,000 words take 500 kB"


def test_threads_share_one_analyzer():
    texts = [" ".join(f"computing{i}s flows{j}ing" for i in range(50)) for j in range(40)]
    expected = [Analyzer().terms(text) for text in texts]
    shared = Analyzer()
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(shared.terms, texts)) == expected


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("C++, c++; (C++) C++'s", "c++ c++ c++ c++ s"),
        ("C++11 C# F#, g++", "c++ 11 c# f# g++"),
        (".NET .Net (.net)", ".net .net .net"),
        ("el niño's C# 飛行機", "el nino c# 飛行 行機"),
        ("ASP.NET vb.net ..net .network", "asp .net vb .net net network"),
        ("java.net.URL example.net.", "java net url exampl .net"),
        ("na++ x+++y a#b po#5 # ++ C + + ö#", "na x y b po 5 c o"),
        ("Ｃ＃ ａｎｄ C⁺⁺", "c# c++"),
    ],
)
def test_names_with_signs(text, terms):
    assert Analyzer().terms(text) == terms.split()
    bare = Analyzer(AnalysisSettings(symbols=False))
    assert not {"c++", "c#", ".net"} & set(bare.terms(text))
    # Words are where they were: only what they are called is another.
    assert [token[1:] for token in Analyzer().tokens(text)] == [
        token[1:] for token in bare.tokens(text)
    ]


@given(st.text(st.sampled_from("Cc+#.NETnet 1'\n飛é"), max_size=30))
def test_names_keep_terms_and_tokens_alike(text):
    analyzer = Analyzer(AnalysisSettings(stop_words="none"))
    assert [token.term for token in analyzer.tokens(text)] == analyzer.terms(text)
    assert TermNumbering(analyzer).numbered(AnalysedTexts([text])).terms == list(
        dict.fromkeys(analyzer.terms(text))
    )
