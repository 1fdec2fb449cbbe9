"""What people type in the search box of a shop, and what they find."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klsa_search import build

KINDS = {
    "coffee machine": "For beans. Goes with a coffee cup.",
    "washing machine": "Quiet, with a coffin-shaped door.",
    "gaming mouse": "Wireless.",
    "gamma meter": "Measures rays of samples.",
    "yoga mat": "Dries quickly.",
    "summer dress": "Machine washable.",
    "bicycle helmet": "Dries fast, safe on roads.",
    "headphones": "Wireless, with a bag.",
    "phone case": "For phones of any size. A phone is not included.",
    "samsung television": "75 inch.",
    "samsung tablet": "64 GB.",
    "smartphone": "iPhone 14 with 128 GB.",
    "old smartphone": "iPhone 12 with 64 GB.",
    "laptop": "32 GB of memory.",
    "small laptop": "8 GB of memory. Weighs 32 ounces.",
    "mattress": "Soft.",
    "hard drive": "Portable.",
}


@pytest.fixture(
    scope="module",
    params=[1, pytest.param(2, marks=pytest.mark.slow)],
    ids=["one part", "two parts"],
)
def shop(request, index_of):
    rows = [
        {"id": f"{title} {number}", "title": title, "text": f"{text} Offer {number}."}
        for title, text in KINDS.items()
        for number in range(20)
    ]
    rows.append({"id": "typo", "title": "headphnoes", "text": "Someone cannot type."})
    options = {"partitions": request.param, "workers": 1, "ranker": "bm25"}
    return index_of(rows, **options)


def kinds(results):
    """Return the titles of hits, in order, each once."""
    return list(dict.fromkeys(hit.id.rpartition(" ")[0] for hit in results))


TYPED = [
    ("coffe machine", "all", None, "coffee machine"),
    ("gamin mouse", "all", None, "gaming mouse"),
    ("coffe ma", "all", "last", "coffee machine"),
    ("samsung tele", "all", None, "samsung television"),
    ("samsung t", "all", "last", "samsung t"),
    ("samsn", "all", "last", "samsung t"),
    ("mouse wirl", "all", "last", "gaming mouse"),
    ("headpohn", "all", "last", "headphones"),
    ("head phones", "all", None, "headphones"),
    ("dres", "any", None, "summer dress"),
    ("gamingmouse", "any", None, "gaming mouse"),
    ("sumer dress", "any", None, "summer dress"),
    ("washng mashine", "all", None, "washing machine"),
    ("laptpo", "all", None, "laptop"),
    ("iphone14", "all", None, "smartphone"),
    ("phone cse", "all", None, "phone case"),
    ("yoag matt", "all", None, "yoga mat"),
    ("hardrive", "all", None, "hard drive"),
    ("lap topp", "all", None, "laptop"),
    ("wireless head phnes", "all", None, "headphones"),
    ("samsung telev siion", "all", None, "samsung television"),
    ("smart pone 64", "all", None, "old smartphone"),
    ("wirelessmosue", "all", None, "gaming mouse"),
    ("gamingmuose", "all", None, "gaming mouse"),
]


@pytest.mark.parametrize(("query", "match", "prefix", "first"), TYPED)
def test_misspelt_and_unfinished_words_find_what_was_meant(shop, query, match, prefix, first):
    found = shop.search(query, 400, match=match, prefix=prefix)
    assert kinds(found)[0].startswith(first)
    said = found.interpretation
    assert said.unknown == ()
    assert said.did_you_mean is None
    assert said.corrections or said.prefixes or said.variants


def test_all_words_must_match_as_they_were_understood(shop):
    for query, meant in [("coffe machine", "coffee machine"), ("gamin mouse", "gaming mouse")]:
        found = shop.search(query, match="all")
        assert found.total == shop.search(meant, match="all").total == 20
        assert found.interpretation.corrections == {query.split()[0]: meant.split()[0]}


def test_two_words_stay_two_if_they_are_likelier_than_one(shop):
    for query, corrections in [
        ("coffee mashine", {"mashine": "machine"}),
        ("phone caes", {"caes": "case"}),
        ("old smart phonne", {"smart phonne": "smartphone"}),
        ("gaming mou", {}),
    ]:
        assert shop.search(query).interpretation.corrections == corrections


def test_one_letter_is_completed_while_it_is_typed(shop):
    assert shop.search("s", prefix="last", match="all").total > 0
    assert shop.search("iphone 1", prefix="last", match="all").total == 40


def test_a_rare_word_stays_and_a_far_more_frequent_one_is_searched_as_well(shop, monkeypatch):
    monkeypatch.setattr("klsa_search.search.query.word_reader.MIN_FREQUENCY_RATIO", 10)
    found = shop.search("headphnoes", 30, match="all")
    assert found[0].id == "typo"
    assert found.total == 21
    assert found.interpretation.variants == {"headphnoes": "headphones"}
    assert len(shop.rank("headphnoes")[0]) == 1


def test_what_is_evaluated_is_corrected_word_by_word(shop):
    assert len(shop.rank("coffe machine", 400)[0]) == len(shop.rank("machine", 400)[0])


@pytest.mark.parametrize("query", ["MwSt mouse", "mou5e laptop", "TBX mouse", "cse television"])
def test_codes_and_abbreviations_are_no_typing_errors(shop, query):
    said = shop.search(query).interpretation
    assert (said.corrections, said.unknown) == (
        {},
        (next(iter({*query.split()} - {"mouse", "laptop", "television"})),),
    )


def test_rules_and_synonyms_see_what_was_typed_and_what_was_understood(tmp_path):
    rows = [{"id": str(n), "title": "safe lock", "text": "for a safe home"} for n in range(20)]
    rows.append({"id": "other", "text": "a strongbox"})
    with build(rows, name="rules", home=tmp_path) as index:
        index.set_rules(
            [
                {
                    "id": "sale",
                    "when": {"query_is": "safee"},
                    "then": {"pin": [{"id": "7", "position": 1}]},
                },
                {"id": "safe", "when": {"query_is": "safe"}, "then": {"hide": ["0"]}},
            ]
        )
        found = index.search("safee", 30)
        assert found.rules == ("sale", "safe")
        assert (found[0].id, found.total) == ("7", 19)
        index.set_synonyms(["safe, strongbox"])
        assert index.search("strongbox").interpretation.synonyms == {"strongbox": ("safe",)}
        assert index.search("saef").interpretation.synonyms == {"safe": ("strongbox",)}


words = st.sampled_from(
    ["coffe", "machine", "samsn", "headphnoes", "x", "gamingmouse", "dre", "32gb"]
)


@given(st.lists(words, min_size=1, max_size=4), st.sampled_from(["any", "all"]))
def test_every_word_is_either_searched_or_said_to_be_left_out(shop, typed, match):
    query = " ".join(typed)
    said = shop.search(query, match=match).interpretation
    parts = {*said.words, *said.unknown, *said.corrections, *said.variants, *said.stop_words}
    parts |= {prefix.rstrip("*") for prefix in said.prefixes}
    assert {word for part in parts for word in part.split()} >= {*typed}


def test_a_rarer_joined_word_does_not_replace_the_words_of_a_query(index_of):
    texts = ["paragraph", "classification", "classification of a paragraph"] * 4
    texts += ["paragraphclassification", "head of sales", "phones", "phone", "heads", "headphones"]
    index = index_of(texts, ranker="bm25")
    for match in ("any", "all"):
        found = {hit.id for hit in index.search("paragraph classification", 20, match=match)}
        assert found >= {"2", "5", "8", "11", "12"}
        assert [hit.id for hit in index.search("head phones", match=match)] == ["17"]


def test_a_joined_word_is_meant_if_no_document_has_one_of_its_parts(index_of):
    index = index_of(["a smartphone", *(f"a phone of kind {n}" for n in range(9))], ranker="bm25")
    for match in ("any", "all"):
        assert [hit.id for hit in index.search("smart phone", match=match)] == ["0"]


@pytest.mark.parametrize(("typed", "written"), [("usbc", "USB-C"), ("PhD", "Ph.D.")])
def test_a_part_of_one_letter_is_meant_rather_than_an_unsure_correction(index_of, typed, written):
    texts = [f"a {written} thing", "a USB hub", "a thesis", "the Program C", "vitamin D"]
    texts += [f"cable {n}" for n in range(20)]
    index = index_of(texts)
    result = index.search(typed)
    assert [hit.id for hit in result.hits][:1] == ["0"]
    parts = written.replace("-", " ").replace(".", " ").split()
    assert result.interpretation.corrections[typed].lower().split() == [
        part.lower() for part in parts
    ]


def test_an_abbreviation_without_points_is_not_a_similar_word(index_of):
    index = index_of(["the U.S.A. and the UK", "a USB cable"] + [f"cable {n}" for n in range(20)])
    found = index.search("usa")
    assert [hit.id for hit in found] == ["0"]
    assert found.interpretation.corrections == {"usa": "u s a"}


@pytest.mark.parametrize(
    ("text", "language", "typed"),
    [
        ("Log in to your account, then sign up.", "english", "login acount"),
        ("Log in to your account, then sign up.", "english", "loginto acount"),
        ("京都大学コンピュータ", "japanese", "コンピュータ京都"),
        ("苹果 公司 大学 gamma", "english", "gamma苹果公art"),
        ("ประเทศไทย ประเทศลาว", "english", "ประเทศลาวไทย"),
        ("한국어 컴퓨터 iPhone", "english", "iPhone한국어컴퓨터"),
    ],
)
def test_words_run_together_with_stop_words_and_pairs_are_searched(index_of, text, language, typed):
    index = index_of([{"id": "1", "text": text}], language=language)
    assert [hit.id for hit in index.search(typed)] == ["1"]
    for suggestion in index.suggest(typed):
        assert index.search(suggestion.query, match="all").total == suggestion.documents


@pytest.mark.parametrize("partitions", [1, 2])
def test_a_word_that_is_written_apart_leaves_the_words_beside_it(index_of, partitions):
    texts = {
        "both": "stop a DB instance",
        "joined": "a DBinstance",
        "other": "stop an instance",
        "rest": "stop a DB",
    }
    rows = [{"id": id_, "text": text} for id_, text in texts.items()]
    rows += [{"id": f"r{number}", "text": f"an instance of sort {number}"} for number in range(9)]
    index = index_of(rows, partitions=partitions, workers=1, ranker="bm25")
    for query in ("stop DB instance", "stop DB insta nce"):
        found = {hit.id for hit in index.search(query, match="all")}
        assert found == {"both"}, query
