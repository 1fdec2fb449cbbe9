"""Spelling: unknown words, and only these, are corrected to words of the documents."""

import random

import pytest

from klsa_search import build
from klsa_search.errors import QueryError
from klsa_search.search.query import corrections

TEXTS = {
    "boundary": "The boundary layer of a supersonic wing; boundary layers are thin.",
    "network": "Wi-Fi networks and the wi-fi of a network, an e-mail server.",
    "university": "A university of universities: universal.",
    "retrieval": "Information retrieval retrieves documents, online and on paper. Heat transfer.",
    "company": "A corporate flat.",
    "bread": "Bread, flour, water: the flower of bakeries. Supporters support supporters.",
}


@pytest.fixture(scope="module")
def index(index_of):
    documents = [{"id": name, "text": text} for name, text in TEXTS.items()]
    return index_of(documents, dimensions=2)


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("retreival", "retrieval"),  # two letters changed places
        ("boundry", "boundary"),  # one is missing, and the stem ends otherwise
        ("netwrok", "network"),
        ("supersonnic", "supersonic"),
        ("informotion", "Information"),
        ("Universty", "university"),
        ("wifi", "wi fi"),
        ("email", "e mail"),
        ("heattransfer", "heat transfer"),
        ("heatransfer", "heat transfer"),  # a letter of both
        ("heattranfser", "heat transfer"),  # one of them is misspelt
        ("korporate", "corporate"),  # c and k sound alike
        ("infermationretrieval", "Information retrieval"),
    ],
)
def test_misspelt_words_are_corrected(index, wrong, right):
    found = index.search(wrong)
    assert found.interpretation.corrections == {wrong: right}
    assert found.interpretation.did_you_mean is None  # as it was searched
    assert found.interpretation.words == tuple(right.split())
    assert found.interpretation.unknown == ()
    assert found.hits == index.search(right).hits


@pytest.mark.parametrize(
    "word", ["bred", "zzzzzz", "b747", "wnig7", "xretrieval", "of", "flwer bread"[:3], "雪雪雪雪"]
)
def test_words_without_a_near_term_stay(index, word):
    """Short words, words with figures, words that begin otherwise."""
    said = index.search(f"{word} bread").interpretation
    assert said.corrections == ({} if word != "bred" else {"bred": "Bread"})
    assert (said.did_you_mean is None) == (word != "bred")


def test_the_nearest_comes_first_then_the_one_in_most_documents(index_of):
    documents = [{"id": str(i), "text": text} for i, text in enumerate(
        ["flowers", "flower", "flowed", "flowed", "floor", "floor"])]  # fmt: skip
    index = index_of(documents, dimensions=2, stemmer="none")
    assert index.search("flowes").interpretation.corrections == {"flowes": "flowed"}
    assert index.search("flor").interpretation.corrections == {"flor": "floor"}


@pytest.mark.parametrize(
    ("typed", "right"), [("mose", "mouse"), ("hrse", "horse"), ("machne", "machine")]
)
def test_a_letter_may_be_missing_before_an_ending_that_the_stem_lacks(index_of, typed, right):
    texts = ["A mouse in a moment.", "A horse in a hurry.", "A machine for mice."]
    index = index_of([{"id": text, "text": text} for text in texts], dimensions=2)
    assert index.search(typed).interpretation.corrections == {typed: right}


@pytest.fixture
def is_small(monkeypatch):
    monkeypatch.setattr(corrections, "MIN_DOCUMENTS", 1000)


@pytest.fixture(
    scope="module", params=[{"partitions": 2, "workers": 1}, {"passages": "20"}], ids=str
)
def sniffers(request, index_of):
    """Return 600 documents, which all contain *sniffer*; five with *most*, one with a code."""
    documents = [
        {"id": str(n), "text": f"The sniffer {n} captures packets, {'most' if n < 5 else 'some'}.",
         "shelf": n % 7}
        for n in range(600)
    ]  # fmt: skip
    return index_of(documents, ranker="bm25", **request.param)


@pytest.mark.usefixtures("is_small")
@pytest.mark.parametrize(
    ("typed", "right", "options"),
    [
        ("snifer", "sniffer", {}),  # in all documents
        ("SNIFER", "sniffer", {}),
        ("captres", "captures", {}),
        ("the snifer", "the sniffer", {}),
        ("+snifer", "+sniffer", {}),
        ("snifer pacjets", "sniffer packets", {}),
        ("snifer qqqqqq", "sniffer qqqqqq", {}),
        *(
            ("snifer pacekts", "sniffer packets", options)
            for options in (
                {"match": "all"},
                {"match": "most"},
                {"prefix": "last"},
                {"group": "passage"},
                {"ranker": "klsa"},
                {"operators": False},
                {"filter": "shelf = 3"},
                {"sort": ["shelf"]},
            )
        ),
    ],
    ids=str,
)
def test_a_correction_is_searched_if_no_document_contains_the_words(
    sniffers, typed, right, options
):
    found, expected = (sniffers.search(query, **options) for query in (typed, right))
    assert found.total == expected.total > 0
    assert found.hits == expected.hits
    said = found.interpretation
    assert {*said.unknown} == {"qqqqqq"} & {*typed.split()}
    assert said.corrections
    assert said.did_you_mean is None


@pytest.mark.usefixtures("is_small")
def test_a_correction_is_searched_next_to_words_of_documents(sniffers):
    found = sniffers.search("snifer packets")
    assert found.interpretation.corrections == {"snifer": "sniffer"}
    assert found.interpretation.did_you_mean is None
    assert found.hits == sniffers.search("sniffer packets").hits
    suggested = sniffers.search("snifer", spelling="suggest")
    assert (suggested.total, suggested.interpretation.did_you_mean) == (0, "sniffer")


@pytest.mark.usefixtures("is_small")
def test_an_explanation_is_of_the_corrected_query(sniffers):
    (hit,) = sniffers.search("snifer", 1)
    assert sniffers.explain("snifer", hit.id).score == pytest.approx(hit.score)


@pytest.mark.parametrize("large", [False, True])
def test_abbreviations_names_and_codes_are_not_corrected(sniffers, large, monkeypatch):
    monkeypatch.setattr(corrections, "MIN_DOCUMENTS", 100 if large else 1000)
    for query in ("MwSt packets", "SnIffre packets", "snIffeer packets", "sniffr1 packets"):
        said = sniffers.search(query).interpretation
        assert (said.corrections, said.words, said.did_you_mean) == ({}, ("packets",), None)
    for query in ("sniffr1", "pack3ts"):
        assert sniffers.search(query).interpretation.corrections == {}
    # Without any other word: of a short one it is only reported, whatever the index.
    alone = sniffers.search("MwSt")
    assert (alone.total, alone.interpretation.did_you_mean) == (0, "most")
    assert sniffers.search("SnIffre").interpretation.words == ("sniffer",)


def test_capitals_say_nothing_in_a_query_in_capitals(sniffers):
    found = sniffers.search("SNIFFRE PACKETS")
    assert found.interpretation.words == ("sniffer", "PACKETS")
    assert found.hits == sniffers.search("sniffer packets").hits


def test_words_with_capitals_are_split(index):
    assert index.search("WiFi paper").interpretation.corrections == {"WiFi": "Wi Fi"}


def test_words_are_corrected_to_what_is_written_alone(index_of):
    """A stem is no word: what ends as the query's word does has to be in a document."""
    texts = ["Diversification of a portfolio", "An adjacency matrix", "Convergence of series"]
    index = index_of(texts, dimensions=2)
    for word in ("DIVERSIFYING", "diversifies", "convergently"):
        said = index.search(word).interpretation
        assert (said.corrections, said.did_you_mean) == ({}, None)
    assert index.search("diversifcation").interpretation.words == ("Diversification",)
    # Another form of a known stem is known, whether a document writes it or not.
    assert index.search("converges").interpretation.words == ("converges",)


def test_a_small_collection_only_suggests(tmp_path, monkeypatch):
    """Most words are in none of a few documents: one that is near another may well be right."""
    monkeypatch.setattr(corrections, "MIN_DOCUMENTS", 3)
    texts = ["The intersection graph of paths", "A survey of computer response"]
    documents = [{"id": str(i), "text": text} for i, text in enumerate(texts)]
    index = build(documents, name="small", home=tmp_path, dimensions=2)
    found = index.search("human computer interaction")  # *human* is in no document, *computer* is
    assert found.interpretation.words == ("computer",)
    assert found.interpretation.corrections == {"interaction": "intersection"}
    assert found.interpretation.did_you_mean == "human computer intersection"
    assert found.hits == index.search("computer").hits
    joined = index.search("computer_interaction, computer_interactionก").interpretation
    assert joined.did_you_mean == "computer_intersection, computer_interactionก"
    assert index.search("computer interactionก").interpretation.did_you_mean is None
    # Two letters that changed places are a slip wherever they are.
    assert index.search("intersetcion").interpretation.words == ("intersection",)
    index.add([{"id": "new", "text": "A tree"}])
    assert index.search("intersecton paths").interpretation.words == ("intersection", "paths")
    index.delete(["new"])
    assert index.search("intersecton paths").interpretation.words == ("paths",)
    index.close()


def test_only_words_that_no_document_holds_are_put_right(index):
    for text in TEXTS.values():
        said = index.search(text).interpretation
        assert (said.corrections, said.unknown, said.did_you_mean) == ({}, (), None)


def test_plausible_words_stay(index_of):
    """Function words are none that a document has to hold; of a short word it is only told."""
    text = "The shape of a duck: who floored it at ease and in former times."
    index = index_of([{"id": "a", "text": text}])
    for word in ("whom", "else", "formerly"):
        assert index.search(word).interpretation.corrections == {}
    for word, near in {"shake": "shape", "deck": "duck", "flor": None}.items():
        said = index.search(f"{word} times").interpretation
        assert (said.words, said.unknown) == (("times",), (word,))
        assert said.corrections == ({word: near} if near else {})
        assert said.did_you_mean == (f"{near} times" if near else None)
    assert index.search("shaep").interpretation.words == ("shape",)


@pytest.mark.parametrize(
    ("query", "meant"),
    [
        ("retreival", "retrieval"),
        ("65 retreival", None),
        ("retreival 65 xyzzy", None),
        ("65 retreival paper", "65 retrieval paper"),
    ],
)
def test_a_suggestion_keeps_words_of_documents(query, meant, index):
    said = index.search(query, spelling="suggest").interpretation
    assert (said.corrections["retreival"], said.did_you_mean) == ("retrieval", meant)


def test_corrections_can_be_suggested_or_turned_off(index):
    suggested = index.search("retreival paper", spelling="suggest")
    assert suggested.hits == index.search("paper").hits
    assert suggested.interpretation.unknown == ("retreival",)
    assert suggested.interpretation.did_you_mean == "retrieval paper"
    off = index.search("retreival paper", spelling="off")
    assert off.hits == suggested.hits
    assert off.interpretation.did_you_mean is None
    with pytest.raises(QueryError, match="spelling"):
        index.search("paper", spelling="on")


def test_required_words_are_corrected_and_excluded_ones_are_not(index):
    assert [hit.id for hit in index.search("+retreival paper")] == ["retrieval"]
    assert [hit.id for hit in index.search('"informotion retreival"')] == ["retrieval"]
    assert [hit.id for hit in index.search("text:wifi")] == ["network"]
    excluded = index.search("paper -retreival")
    assert excluded.interpretation.corrections == {}
    assert "retrieval" in [hit.id for hit in excluded]
    said = index.search('+retreival "boundry layer"').interpretation
    assert said.words == ("retrieval", "boundary", "layer")
    said = index.search('+retreival "boundry layer"', spelling="suggest").interpretation
    assert said.did_you_mean == '+retrieval "boundary layer"'


def test_words_with_hyphens_are_found_where_they_are_written_without(index):
    said = index.search("an on-line server").interpretation
    assert said.variants == {"on-line": "online"}
    assert [hit.id for hit in index.search("+on-line")] == ["retrieval"]
    assert "retrieval" not in [hit.id for hit in index.search("server heat -on-line")]
    assert index.search("on-line", spelling="off").interpretation.variants == {}


def test_a_prefix_longer_than_the_stem(index):
    assert index.search("universit*").interpretation.prefixes == {"universit*": ("univers",)}
    assert index.search("universitu*").interpretation.prefixes == {"universitu*": ()}


def test_later_documents_put_words_right(tmp_path):
    documents = [{"id": name, "text": text} for name, text in TEXTS.items()]
    index = build(documents, name="later", home=tmp_path, dimensions=2)
    assert index.search("aerodinamics").interpretation.corrections == {}
    index.add([{"id": "new", "text": "Aerodynamics of gliders"}])
    assert index.search("aerodinamics").interpretation.words == ("Aerodynamics",)
    index.delete(["new"])
    assert index.search("aerodinamics").interpretation.corrections == {}
    index.close()


FEW = ["wing", "winglet", "drag", "dragon", "turbine", "turbines", "propeller"]


def test_deleted_words_are_as_unknown_as_in_a_fresh_build(tmp_path):
    """Whatever was added and deleted: the same words known, corrected and suggested."""
    made = random.Random(3)
    live = {"first": "propeller shaft", "a": "turbine wing", "b": "winglet of a dragon"}
    written = build(_documents(live), name="written", home=tmp_path, dimensions=2, ranker="bm25")
    gone = 0
    for _ in range(3):
        for _ in range(4):
            name, words = made.choice("abcd"), made.choices(FEW, k=made.randrange(3))
            if words:
                live[name] = " ".join(words)
                written.add(_documents({name: live[name]}))
            elif live.pop(name, None):
                written.delete([name])
        fresh = build(_documents(live), name="fresh", home=tmp_path, dimensions=2, ranker="bm25")
        known = written.arrays.vocabulary
        assert {*known.numbers} == {*fresh.arrays.vocabulary.numbers}
        gone += len(known) - len(known.numbers)
        for word in [*FEW, "propelled", "drags", "turbne", "wingdragon", "wing-let"]:
            assert written.search(word).interpretation == fresh.search(word).interpretation
            assert written.suggest(word) == fresh.suggest(word)
        fresh.close()
    assert gone
    written.close()


def test_synonyms_of_a_word_that_is_gone_count_as_of_one_never_seen(tmp_path):
    index = build(_documents({"a": "tv", "b": "radio"}), name="gone", home=tmp_path, dimensions=2)
    index.set_synonyms(["tv, television", "wireless => radio, tv"])
    index.delete(["a"])
    said = index.search("wireless").interpretation
    assert said.synonyms == {"wireless": ("radio",)}
    assert index.search("tv").interpretation.unknown == ("tv",)
    index.close()


def _documents(texts):
    return [{"id": name, "text": text} for name, text in texts.items()]


def test_names_with_signs_are_words(index_of):
    texts = {
        "plus": "Written in C++",
        "sharp": "C# for .NET",
        "c": "The C language",
        "net": "A net",
    }
    index = index_of(texts, dimensions=2, ranker="bm25")
    found = {
        query: [hit.id for hit in index.search(query)]
        for query in ("C++", "c#", ".net", "net", "c", "+C++", '"in C++"', "language -C++")
    }
    assert found == {
        "C++": ["plus"],
        "c#": ["sharp"],
        ".net": ["sharp"],
        "net": ["net"],
        "c": ["c"],
        "+C++": ["plus"],
        '"in C++"': ["plus"],
        "language -C++": ["c"],
    }
    assert index.search("C++ C").interpretation.words == ("C++", "C")


def test_the_published_method_reads_words_as_they_stand(index_of):
    index = index_of(TEXTS, preset="paper")
    said = index.search('retreival -"boundary" on-line').interpretation
    assert said.unknown == ("retreival", "line")
    assert (said.corrections, said.excluded, said.variants) == ({}, (), {})


def test_the_first_ten_unknown_words_are_put_right(index):
    wrong = [f"retreiva{letter}" for letter in "abcdefghijklmn"]
    said = index.search(" ".join([*wrong, wrong[0]])).interpretation
    assert list(said.corrections) == wrong[:10]
    assert said.unknown == tuple(wrong[10:])
