"""Words that some documents write joined and others apart are found both ways."""

import pytest

from klsa_search import build

PAIRS = [
    ("UTF8", "UTF-8"),
    ("covid19", "COVID-19"),
    ("WD40", "WD 40"),
    ("iPhone14", "iPhone 14"),
    ("10mm", "10 mm"),
    ("500GB", "500 GB"),
    ("1000000", "1,000,000"),
    ("25000", "25 000"),
    ("NodeJS", "Node.js"),
    ("PowerPoint", "Power Point"),
    ("HTTPServer", "HTTP server"),
    ("wifi", "Wi-Fi"),
    ("b12", "B 12"),
]

LONGER = [
    ("ab123", "AB-12/3"),
    ("4711A", "4711-A"),
    ("M8x40", "M8 x 40"),
    ("USA", "U.S.A."),
    ("MIT", "M.I.T."),
    ("motherinlaw", "mother-in-law"),
    ("9783161484100", "978-3-16-148410-0"),
    ("6ES72141AG400XB0", "6ES7 214-1AG40-0XB0"),
    ("550e8400e29b41d4a716446655440000", "550e8400-e29b-41d4-a716-446655440000"),
]


@pytest.fixture(scope="module", params=["joined", "apart", "both"])
def written(request, tmp_path_factory):
    """Return an index of documents that write the words joined, apart, or both."""
    sides = {"joined": (0,), "apart": (1,), "both": (0, 1)}[request.param]
    documents = [
        {"id": f"{number}{side}", "text": f"Notes on {pair[side]} here"}
        for number, pair in enumerate(PAIRS)
        for side in sides
    ]
    opened = build(documents, name="written", home=tmp_path_factory.mktemp("home"), ranker="bm25")
    yield opened, sides
    opened.close()


def test_words_are_found_both_ways(written):
    index, sides = written
    for number, pair in enumerate(PAIRS):
        if sides == (0, 1) and pair[0].isalpha():
            continue  # words of letters that documents contain stand as typed
        for query in pair:
            for match in ("any", "all"):
                found = index.search(query, match=match)
                assert {f"{number}{side}" for side in sides} <= {hit.id for hit in found}, query
                assert match == "any" or found.total == len(sides), query
            assert index.search(query).interpretation.unknown == (), query


def test_words_are_excluded_both_ways(written):
    index, sides = written
    for number, pair in enumerate(PAIRS):
        if sides == (0, 1) and (pair[0].isalpha() or pair[0] == "iPhone14"):
            continue  # words of letters that documents contain stand as typed, also *Phone*
        for word in pair:
            if word == "wifi" and sides == (1,):
                continue  # no document shows that it is not two words, as in *car pet*
            word = f'"{word}"' if " " in word else word
            for query in (f"notes -{word}", f"notes NOT {word}"):
                found = index.search(query, k=100, operators=True)
                ids = {f"{other}{side}" for other in range(len(PAIRS)) for side in sides}
                assert {hit.id for hit in found} == ids - {f"{number}0", f"{number}1"}, query


@pytest.mark.parametrize("partitions", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_words_exclude_what_a_search_for_them_finds(index_of, partitions):
    texts = ["Notes on COVID19"] * 9 + ["Notes on COVID-19", "Notes on cars", "Notes on 19 cars"]
    texts += ["Notes: email"] * 3 + ["Notes: e-mail"]
    index = index_of(texts, partitions=partitions, workers=1)
    for word, total in (("covid19", 9), ("COVID-19", 10), ("car", 2), ("email", 3)):
        assert index.search(f"notes +{word}").total == total
        assert index.search(f"notes -{word}").total == len(texts) - total
    assert index.search("notes -card").total == len(texts)


@pytest.mark.parametrize("partitions", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_an_excluded_word_is_not_divided_at_any_letter(index_of, partitions):
    texts = ["it may be hot", "hot some one", "hot the rapist", "hot car pet", "hot UTF-8"]
    index = index_of(texts, partitions=partitions, workers=1)
    for word in ("maybe", "someone", "therapist", '"carpet"'):
        assert index.search(f"hot -{word}").total == 5, word
    found = index.search("hot -utf8")
    assert found.total == 4
    assert found.interpretation.variants == {"utf8": "utf 8"}


@pytest.mark.parametrize("partitions", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_parts_may_be_stop_words(index_of, partitions):
    texts = [
        "a unit of class 1A",
        "1 a day",
        "1 of them",
        "the login page",
        "log in here",
        "log it",
    ]
    index = index_of(texts, partitions=partitions, workers=1)
    for query in ("1A", "1a"):
        found = index.search(query, match="all")
        assert {hit.id for hit in found} >= {"0", "1"}
        assert found.interpretation.variants == {query: " ".join(query)}
    for query in ("+1A", "+1A unit"):
        assert {hit.id for hit in index.search(query)} == {"0", "1"}
    assert {hit.id for hit in index.search("page day -1A")}.isdisjoint({"0", "1"})


def test_excluded_words_neither_need_nor_use_up_corrections(index_of):
    many = " ".join(f"-zz{number}" for number in range(12))
    index = index_of(["hot filler words", "hot UTF-8", "hot gearbox"], ranker="bm25")
    found = index.search(f"{many} -utf8 hot fillre")
    assert [hit.id for hit in found] == ["0", "2"]
    assert found.interpretation.corrections == {"fillre": "filler"}


PERSIAN = ["کتاب\u200cخانه", "کتابخانه", "کتاب خانه"]


@pytest.mark.parametrize("written", PERSIAN, ids=["joiner", "joined", "apart"])
def test_persian_compounds_are_found(written, index_of):
    index = index_of({"1": f"{written} بزرگ", "2": "شهر"}, language="persian")
    for query in PERSIAN:
        assert [hit.id for hit in index.search(query)] == ["1"]


def test_a_joiner_is_a_blank_that_words_may_be_joined_across(index_of):
    index = index_of([f"{text} بزرگ" for text in PERSIAN], language="persian")
    found = index.search(PERSIAN[0])
    assert {hit.id for hit in found} == {"0", "1", "2"}
    assert found.interpretation.variants == {PERSIAN[0]: PERSIAN[1]}


def test_names_are_found_by_the_names_of_their_signs(index_of):
    texts = {
        "net": "Runs on .NET 8",
        "word": "the dotnet command",
        "sharp": "Written in C# and safe",
        "plus": "Written in C++ and fast",
        "rest": "a surplus of work",
        "asp": "ASP.NET pages",
        "knife": "a sharp knife with a dot",
    }
    index = index_of(texts, ranker="bm25")
    for query, expected, variants, corrections in (
        ("dotnet", {"net", "word", "asp"}, {"dotnet": ".net"}, {}),
        ("csharp", {"sharp"}, {}, {"csharp": "c#"}),
        ("cplusplus", {"plus"}, {}, {"cplusplus": "c++"}),
        ("surplus", {"rest"}, {}, {}),
        ("aspnet", {"asp", "net"}, {}, {"aspnet": "asp .net"}),
        ("c sharp", {"sharp", "knife"}, {"c sharp": "c#"}, {}),
        ("dot net", {"net", "asp", "knife"}, {"dot net": ".net"}, {}),
        ("f sharp", {"knife"}, {}, {}),
        ("C ++", {"plus"}, {}, {}),
        ("c # safe", {"sharp"}, {}, {}),
    ):
        found = index.search(query)
        assert {hit.id for hit in found} == expected
        assert found.interpretation.variants == variants
        assert found.interpretation.corrections == corrections


@pytest.mark.parametrize("pair", LONGER, ids=[joined for joined, _ in LONGER])
def test_words_of_several_parts_are_found_both_ways(pair, index_of):
    noise = [
        "T shirts for M, I and S sizes",
        "Items 1, 2, 3, 12 and 978",
        "In law, a mother",
        "M 8",
    ]
    for written, query in (pair, reversed(pair)):
        texts = {"wanted": f"Notes on {written} here", **dict(zip("abcd", noise, strict=True))}
        index = index_of(texts)
        found = index.search(query)
        assert "wanted" in {hit.id for hit in found}
        assert found.interpretation.variants or found.interpretation.corrections


def test_parts_must_be_side_by_side(index_of):
    index = index_of({"1": "Version 8 of the utf library", "2": "mm 10"})
    for query in ("utf8", "10mm"):
        said = index.search(query).interpretation
        assert (said.unknown, said.corrections, said.variants) == ((query,), {}, {})


def test_operators_apply_to_both_writings(index_of):
    index = index_of({"joined": "utf8 text", "apart": "UTF-8 text", "other": "plain text"})
    for query in ("utf8", "utf-8"):
        assert {hit.id for hit in index.search(f"+{query}")} == {"joined", "apart"}
        assert {hit.id for hit in index.search(f"text -{query}")} == {"other"}
    assert index.search("utf8").interpretation.variants == {"utf8": "utf 8"}
    assert index.search("utf-8").interpretation.variants == {"utf-8": "utf8"}
    assert index.search("utf8", spelling="off").interpretation.variants == {}


def test_two_parts_of_a_longer_name_are_enough(index_of):
    index = index_of({"1": "the user name field", "2": "a name"})
    found = index.search("getUserName")
    assert found[0].id == "1"
    assert found.interpretation.corrections == {"getUserName": "User Name"}


def test_partitions_divide_words_alike(index_of):
    index = index_of([f"UTF-8 number {n}" for n in range(8)], partitions=2, workers=1)
    found = index.search("utf8")
    assert (found.total, found.interpretation.corrections) == (8, {"utf8": "utf 8"})


def test_names_with_signs_are_found_within_names(index_of):
    texts = {
        "asp": "Building web apps with ASP.NET Core",
        "vb": "Macros moved to VB.NET.",
        "runtime": "Runs on .NET 8",
        "fish": "A net full of fish",
        "c": "Written in C and small",
        "cpp": "Written in C++ and fast",
        "c-sharp": "Written in C# and safe",
    }
    expected = {
        ".NET": {"asp", "vb", "runtime"},
        ".net": {"asp", "vb", "runtime"},
        "+asp.net": {"asp"},
        '"VB.NET"': {"vb"},
        "aspnet": {"asp", "vb", "runtime"},
        "net": {"fish"},
        "C++": {"cpp"},
        "C#": {"c-sharp"},
        "C": {"c"},
    }
    index = index_of(texts, ranker="bm25")
    assert {query: {hit.id for hit in index.search(query)} for query in expected} == expected


@pytest.mark.parametrize(
    ("query", "expected", "variants"),
    [
        ("email", {"mail", "post"}, {"email": "e mail"}),
        ("wifi", {"radio", "wave"}, {"wifi": "wi fi"}),  # fi is on the long list
        ("wi fi", {"radio", "wave"}, {"wi fi": "wifi"}),
        ("e-mail", {"mail", "post"}, {"e-mail": "email"}),
        ("sometimes", {"snow"}, {}),  # on the long stop list: some
        ("database", {"store"}, {}),  # data and base stand apart more often
    ],
)
def test_known_words_are_divided_if_the_parts_stand_together(query, expected, variants, index_of):
    texts = {
        "mail": "Send an e-mail to us",
        "post": "The email arrived",
        "rain": "Some times it rains",
        "sun": "Some days it shines",
        "cloud": "Some say so",
        "radio": "Turn the wi-fi off",
        "wave": "Our wifi is slow",
        "snow": "Sometimes it snows",
        "store": "A database of facts",
        "facts": "A data base of birds",
        **{f"data{number}": "Raw data" for number in range(3)},
        **{f"base{number}": "The base of a lamp" for number in range(3)},
    }
    index = index_of(texts, ranker="bm25")
    found = index.search(query)
    assert {hit.id for hit in found} == expected
    assert found.interpretation.variants == variants


@pytest.mark.parametrize(
    ("query", "expected", "variants"),
    [
        ("web site", {"joined", "apart", "far"}, {"web site": "website"}),
        ("+web +site", {"apart", "far"}, {}),  # operators need the words themselves
        ("log in", {"login", "sign"}, {"log in": "login"}),
        ("may be", {"rain"}, {}),  # both are common words
        ("fields in", {"field"}, {}),  # the stem of "fieldsin" would be that of fields
        ("time bases", {"base", "hour", "day"}, {}),  # written apart, and the joined one is rare
    ],
)
def test_known_words_are_joined_if_documents_write_them_so(query, expected, variants, index_of):
    texts = {
        "joined": "Our website is new",
        "apart": "A web site of birds",
        "far": "The site of a spider and its web",
        "login": "The login failed",
        "sign": "Please log in again",
        "rain": "It may rain",
        "snow": "Maybe it snows",
        "field": "Fields of corn",
        "base": "Two time bases of the clock",
        "old": "A timebase of quartz",
        **{f"time{number}": "What time is it" for number in range(9)},
        "hour": "Bases and hours",
        "day": "Bases and days",
    }
    index = index_of(texts, ranker="bm25")
    found = index.search(query, operators=True if "+" in query else None)
    assert found.interpretation.variants == variants
    times = {f"time{number}" for number in range(9)}
    assert {hit.id for hit in found} - times == expected


@pytest.mark.parametrize(
    ("query", "variants"),
    [
        ("12.5", {}),
        ("1234.56", {}),
        ("1.250", {"1.250": "1250"}),
        ("12-5", {"12-5": "125"}),
    ],
)
def test_decimals_are_not_joined(query, variants, index_of):
    index = index_of({n: f"article {n}" for n in ("125", "123456", "1250")})
    assert index.search(query).interpretation.variants == variants


@pytest.mark.parametrize(
    ("language", "query", "joined"),
    [
        ("german", "Kühl schrank", "Kühlschrank"),
        ("finnish", "jää kaappi", "jääkaappi"),
        ("russian", "водо провод", "водопровод"),
    ],
)
def test_words_of_all_letters_are_joined(index_of, language, query, joined):
    first, second = query.split()
    texts = [f"{joined} {number}" for number in range(3)]
    index = index_of([*texts, f"1 {first} 2", f"1 {second} 2", *["x"] * 9], language=language)
    found = index.search(query, match="all")
    assert {hit.id for hit in found} == {"0", "1", "2"}
    assert found.interpretation.variants == {query: query.replace(" ", "")}


@pytest.mark.parametrize("partitions", [1, 2])
def test_an_ending_that_is_written_apart_from_its_stem_is_joined(index_of, partitions):
    texts = ["Kopieren von Tabellen", "eine Kopie der Tabelle", "Erben der Tabelle", "Drucker"]
    index = index_of([*texts, *["Sand"] * 9], language="german", partitions=partitions, workers=1)
    found = index.search("Kopi eren Tabelle", match="all")
    assert {hit.id for hit in found} == {"0", "1"}
    assert found.interpretation.variants == {"Kopi eren": "Kopieren"}
    assert index.search("Drucker e").interpretation.unknown == ("e",)


@pytest.mark.parametrize("blank", " \u00a0\u202f\u2009")
def test_words_are_joined_across_any_blank(blank, index_of):
    index = index_of({"rod": "rod 25mm", "others": "25 rods of 3 mm"})
    assert [hit.id for hit in index.search(f"25{blank}mm", match="all")] == ["rod"]


@pytest.mark.parametrize(
    ("query", "expected", "variants"),
    [
        ("135 x 200", {"tray", "screw"}, {"135 x 200": "135x200"}),
        ("tray 135 x 200", {"tray"}, {"135 x 200": "135x200"}),
        ("135 x 200 x 200", {"screw"}, {"135 x 200": "135x200"}),
        ("x 200", {"plate", "screw"}, {"x 200": "x200"}),
        ("plate x 200", {"plate"}, {"x 200": "x200"}),
        ("200 x 135 x 200", {"tray", "screw"}, {"135 x 200": "135x200"}),
    ],
)
def test_parts_of_a_joined_size_are_not_required(query, expected, variants, index_of):
    index = index_of({"tray": "tray 135x200", "screw": "screw 135x200 x200", "plate": "plate x200"})
    results = index.search(query, match="all")
    assert ({hit.id for hit in results}, results.interpretation.variants) == (expected, variants)


def test_the_first_other_writings_of_a_query_count_in_any_number_of_clauses(index_of):
    pairs = [(f"{a}ak{b}o", f"{a}em{b}u") for a in "bdfgk" for b in "lmnprstz"]
    index = index_of({a + b: a + b for a, b in pairs}, stemmer="none")
    for join, pair in ((" ", "{} {}"), (" OR ", '"{} {}"')):
        query = join.join(pair.format(*words) for words in pairs)
        hits = index.search(query, 50, ranker="bm25")
        assert {hit.id for hit in hits} == {a + b for a, b in pairs[:32]}


GERMAN = {
    "question": "Ein Fragezeichen steht am Ende",
    "marks": "Satzzeichen und Anführungszeichen",
    "house": "Das Krankenhaus liegt am Wald",
    "forest": "Der Wald ist kühl",
    "edge": "Waldränder sind hell",
    "staff": "Mitarbeiter schlafen",
}


@pytest.fixture(scope="module", params=[pytest.param(1, marks=pytest.mark.slow), 2])
def index(request, index_of):
    documents = [{"id": name, "text": text} for name, text in GERMAN.items()]
    options = {"language": "german", "ranker": "bm25", "partitions": request.param}
    return index_of(documents, workers=1, **options)


def test_words_are_found_in_compounds(index):
    for query, expected in (
        ("Frage", {"question"}),
        ("Zeichen", {"question", "marks"}),
        ("Haus", {"house"}),
        ("Haus Wald", {"house", "forest"}),
        ("Wald", {"house", "forest", "edge"}),  # a word of documents, too
        ("Wald kühl", {"house", "forest"}),  # with other words it stands for itself
        ('"Wald"', {"house", "forest"}),  # as typed
        ("+Wald", {"house", "forest"}),
        ("ken", set()),  # neither beginning nor end
        ("mit Wald", {"house", "forest"}),  # a function word
        ("Xyz", set()),
    ):
        assert {hit.id for hit in index.search(query)} == expected, query


def test_operators_apply_to_words_in_compounds(index):
    for query, expected in (
        ("+Haus", {"house"}),
        ("Haus AND Wald", {"house"}),
        ("Haus AND Ende", set()),
        ("Frage OR Haus", {"question", "house"}),
        ("Wald -Haus", {"house", "forest"}),  # only words as typed exclude
    ):
        assert {hit.id for hit in index.search(query)} == expected, query


def test_the_interpretation_has_the_compounds(index):
    said = index.search("Frage").interpretation
    assert (said.unknown, said.prefixes) == ((), {"Frage*": ("fragezeich",)})
    assert {hit.id for hit in index.search("Haus liegt", match="all")} == {"house"}
    assert index.search("Wald").interpretation.prefixes == {"Wald": ("waldrand",)}
    off = index.search("Frage", spelling="off")
    assert (off.total, off.interpretation.unknown) == (0, ("Frage",))
    assert index.search("Wald", spelling="off").total == 2


def test_compounds_rank_behind_a_word_as_rare(index_of):
    texts = {"edge": "Waldrand"} | {f"s{at}": f"Sand {at}" for at in range(9)}
    texts["wood"] = "Birken, ein Wald, lange Reihen"
    index = index_of(texts, language="german")
    for ranker in ("bm25", "klsa"):
        ids = [hit.id for hit in index.search("Wald", ranker=ranker).hits]
        assert ids[:2] == ["wood", "edge"], ranker
    frequent = index_of(texts | {f"s{at}": f"Wald {at}" for at in range(6)}, language="german")
    hits = frequent.search("Wald").hits
    assert len(hits) == 8
    assert hits[-1].id == "edge"  # though it weighs more


@pytest.mark.parametrize("ranker", ["bm25", "klsa"])
def test_compounds_rank_behind_a_word_that_is_more_frequent(index_of, ranker):
    rest = [f"Text {number} of {number % 7}" for number in range(850)]
    words = [f"Wasser {number}" for number in range(150)]
    compounds = ["Mineralwasser 1", "Wasserrohr 2", "Abwasser 3"] * 3
    index = index_of([*compounds, *words, *rest], language="german", ranker=ranker)
    found = index.search("wasser", k=len(words))
    assert all(int(hit.id) >= len(compounds) for hit in found)


@pytest.mark.parametrize("partitions", [1, 2])
def test_a_document_with_the_word_comes_before_those_with_compounds(index_of, partitions):
    texts = {
        "compounds": "Heirat und Verrat",
        "word": "der rat der stadt und viele andere lange worte über häuser",
        **{f"s{at}": f"Sand {at}" for at in range(9)},
    }
    rows = [{"id": id_, "text": text} for id_, text in texts.items()]
    index = index_of(rows, language="german", partitions=partitions, workers=1, ranker="bm25")
    found = index.search("rat")
    assert [hit.id for hit in found] == ["word", "compounds"]
    assert found.interpretation.prefixes.keys() == {"rat"}


def test_a_document_with_the_last_word_comes_before_its_completions(index_of):
    texts = ["der rat der stadt und viele andere lange worte über häuser", *["Rathaus Rathaus"] * 9]
    index = index_of([*texts, *["Sand"] * 9], language="german", ranker="bm25")
    found = index.search("rat", prefix="last")
    assert (found[0].id, found.total) == ("0", 10)


def test_languages_without_compounds_have_none(index_of):
    index = index_of({"1": "a zookeeper"}, language="english")
    assert index.search("keeper").total == 0
