"""AND, OR and NOT between words are operators; what is not read as typed is reported."""

import random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from klsa_search import build
from klsa_search.search.query.syntax import Clause, parse_boolean
from tests.support.examples import one_in

ANIMALS = ("cats", "dogs", "mice", "owls")


def _text(number):
    return " ".join(word for bit, word in enumerate(ANIMALS) if number >> bit & 1) or "none"


@pytest.fixture(
    scope="module",
    params=[{}, pytest.param({"partitions": 2, "workers": 1}, marks=pytest.mark.slow)],
    ids=str,
)
def index(request, index_of):
    """Return an index with a document for each set of the four words."""
    documents = [{"id": str(number), "text": _text(number)} for number in range(16)]
    return index_of(documents, ranker="bm25", **request.param)


def _expected(python):
    return {
        str(number)
        for number in range(16)
        if eval(python, {word: word in _text(number) for word in ANIMALS})
    }


@pytest.mark.parametrize(
    ("query", "python"),
    [
        ("cats NOT dogs", "cats and not dogs"),
        ("cats AND NOT dogs", "cats and not dogs"),
        ("(cats OR dogs) AND NOT mice", "(cats or dogs) and not mice"),
        ("cats OR dogs AND mice", "cats or (dogs and mice)"),
        ("cats dogs OR mice", "(cats and dogs) or mice"),
        ("cats AND (dogs OR (mice AND NOT owls))", "cats and (dogs or (mice and not owls))"),
        ("cats NOT (dogs OR mice)", "cats and not (dogs or mice)"),
        ("cats NOT(dogs OR mice)", "cats and not (dogs or mice)"),
        ("cats AND(dogs OR(mice AND owls))", "cats and (dogs or (mice and owls))"),
        ("（cats OR „owls“） NOT «dogs»", "(cats or owls) and not dogs"),
        ("cats AND -dogs", "cats and not dogs"),
        ("cats NOT NOT dogs", "cats and dogs"),
        ('"cats dogs" OR owls', "(cats and dogs) or owls"),
        ('"dogs cats" OR owls', "owls"),
        ("cats AND do*", "cats and dogs"),
        ("(cats AND dogs", "cats and dogs"),
        ("cats AND dogs)", "cats and dogs"),
        ("cats AND the", "cats"),
        ("cats AND zebras", "False"),
        ("cats OR zebras", "cats"),
    ],
)
def test_documents_match_the_expression(index, query, python):
    found = index.search(query, 16, spelling="suggest")
    assert {hit.id for hit in found} == _expected(python)
    assert found.interpretation.boolean is not None


@st.composite
def _expressions(draw, depth=3):
    if depth == 0 or draw(st.booleans()):
        return draw(st.sampled_from(ANIMALS))
    left, right = draw(_expressions(depth - 1)), draw(_expressions(depth - 1))
    operator = draw(st.sampled_from(["AND", "OR", "AND NOT"]))
    return f"({left} {operator} {right})"


@given(_expressions())
def test_nested_expressions_match_as_in_python(index, expression):
    found = index.search(expression, 16, operators=True)
    python = expression.replace("AND", "and").replace("OR", "or").replace("NOT", "not")
    assert {hit.id for hit in found} == _expected(python)


# Examples are fresh in each run, and two indexes are asked.
@one_in(3)
@given(
    st.text(max_size=40)
    | st.text(st.sampled_from('retival "+-:wifo*'), max_size=30)
    | st.lists(st.sampled_from(["AND", "OR", "NOT", "(", ")", "-", "a"])).map(" ".join)
)
def test_any_text_is_a_query(index, text):
    for operators, spelling in ((None, "auto"), (True, "suggest"), (False, "off")):
        index.search(text, operators=operators, spelling=spelling)


TOKENS = st.sampled_from(["AND", "OR", "NOT", "(", ")", "a", "b", "-c", '"d e"', "f*"])


@given(st.lists(TOKENS, max_size=12))
def test_an_expression_as_it_was_read_reads_the_same(tokens):
    if read := parse_boolean(" ".join(tokens), ()):
        operands = [part for part in read.postfix if isinstance(part, Clause)]
        words = {word for part in operands for word in part.text.split()}
        assume(words.isdisjoint({"AND", "OR", "NOT"}))
        again = parse_boolean(read.written, ())
        assert again is not None
        assert (again.postfix, again.written) == (read.postfix, read.written)


def test_excluded_words_do_not_rank(index):
    found = index.search("cats NOT dogs").interpretation
    assert (found.words, found.excluded, found.boolean) == (("cats",), ("dogs",), "cats NOT dogs")


@pytest.mark.parametrize(
    ("query", "excluded"),
    [
        ("cats OR NOT dogs", ()),
        ("owls OR cats NOT dogs", ()),
        ("(owls OR cats) NOT dogs", ("dogs",)),
        ("owls NOT (cats OR dogs)", ("cats", "dogs")),
        ("owls NOT (cats AND dogs)", ()),
        ("owls NOT dogs OR cats NOT dogs", ("dogs", "dogs")),
    ],
)
def test_excluded_words_are_in_no_hit(index, query, excluded):
    results = index.search(query, k=16)
    assert results.interpretation.excluded == excluded
    for hit in results:
        assert set(excluded).isdisjoint(_text(int(hit.id)).split())


@pytest.mark.parametrize("column", ["id", "sku"])
def test_the_name_of_the_id_is_no_operator(column, tmp_path):
    source = tmp_path / "source.csv"
    source.write_text(f"{column},text\nE-1/2,valve 10:30\nE-3/4,a pump\n")
    with build(source, columns={"id": column}, name="made", home=tmp_path / "home") as index:
        for query in (f"{column}:E-1/2", f"pump {column.upper()}:E-1/2", "id:7"):
            written = query.split()[-1]
            assert index.search(query).interpretation.relaxed == {written: "not_an_operator"}
        for query in (
            "did:plc:ab",
            "skx:7",
            "valve 10:30",
            "std::sort",
            "note: valve",
            f"{column}",
        ):
            assert index.search(query).interpretation.relaxed == {}


@pytest.mark.parametrize(
    ("query", "relaxed"),
    [
        ("NOT dogs", {"NOT": "nothing_to_exclude_from"}),
        ("CATS NOT DOGS", {"NOT": "capitals"}),
        ("飛機 機翼 OR", {"OR": "not_an_operator"}),
        ("why do cats chase mice when owls AND dogs sleep nearby", {"AND": "plain_text"}),
        ("cats AND\ndogs", {"AND": "plain_text"}),
        ("(cats AND dogs", {"(": "not_an_operator"}),
        ("c*ts", {"c*ts": "not_an_operator"}),
        ("*ats dogs", {"*ats": "not_an_operator"}),
        ('"cats dogs', {'"cats': "not_an_operator"}),
        ("c* dogs", {"c*": "short_prefix"}),
        ("cats && dogs", {"&&": "not_an_operator"}),
        ("cats || dogs", {"||": "not_an_operator"}),
        (
            "cats~ dogs^3 mice~0.5",
            dict.fromkeys(["cats~", "dogs^3", "mice~0.5"], "not_an_operator"),
        ),
        ("AT&T x^2 a~b ~cats R|D", {}),
        ("AND gate", {"AND": "not_an_operator"}),
        ("cats ODER dogs", {"ODER": "other_language"}),
        ("cats ET dogs SAUF mice", {"ET": "other_language", "SAUF": "other_language"}),
        ("ODER cats ou dogs OU", {}),
        ("CATS ODER DOGS", {}),
        ("cats and not dogs", {"not dogs": "lower_case"}),
        ("cats, but Not dogs", {"Not dogs": "lower_case"}),
        ("cats or not dogs", {}),
        ('"cats dogs"~2 mice', {"~2": "not_an_operator"}),
        *((sign, {sign: "not_an_operator"}) for sign in ("*", "**", "c?ts", "„cats", "cats»")),
        *((f"cats {sign}dogs", {f"{sign}dogs": "not_an_operator"}) for sign in "!–—"),
        ("text: cats", {"text:": "not_an_operator"}),
        ("note: cats", {}),
        ("cats not dogs", {"not dogs": "lower_case"}),
        ("cats mice not dogs owls", {"not dogs": "lower_case"}),
        ("why do cats not dogs", {}),
        ("not dogs", {}),
        ("cats not", {}),
        ("cats not lions", {}),
        ("cats not dogs?", {}),
        ("cats not \u02bc", {}),
        ("cats not \u02c8", {}),
        ("cats -mice not dogs", {}),
        ("2*3 5\" don't", {}),
    ],
)
def test_operators_read_as_words_are_reported(index, query, relaxed):
    assert index.search(query, spelling="off").interpretation.relaxed == relaxed


def test_an_operator_in_the_language_of_the_index_is_reported(index_of):
    index = index_of(["Hund ODER Katze", "ein Hund", "die Katze"], language="german")
    found = index.search("Hund ODER Katze")
    assert found.interpretation.relaxed == {"ODER": "other_language"}
    assert found.total == 3


def test_not_is_a_word_if_documents_have_it_before_the_word(index_of):
    texts = [
        "the lamp is not on sale",
        "lamp lit sale",
        "lamps working",
        "red lamp",
        "not for sale",
    ]
    index = index_of({str(number): text for number, text in enumerate(texts)})
    assert index.search("lamp not red").interpretation.relaxed == {"not red": "lower_case"}
    for query in ("lamp not sale", "lamp not working", "lamp NOT red", "lamp -red"):
        said = index.search(query).interpretation.relaxed
        assert said == ({"not sale": "lower_case"} if "sale" in query else {})
    index = index_of({"1": "lamp not lit", "2": "lit lamp"})
    assert index.search("lamp not lit").interpretation.relaxed == {}


SHOP = [
    "gaming mouse black wireless",
    "gaming mouse black with a cable",
    "gaming keyboard, head phones",
    "office in the U.S.A. for hire",
    "office in Canada for hire",
    "run javac, options -verbose -help",
]


@pytest.mark.parametrize(
    ("query", "excluded", "absent"),
    [
        ("gaming mouse black -wireless", ("wireless",), "0"),
        ("-wireless gaming mouse black", ("wireless",), "0"),
        ("gaming -wireless mouse black for kids", ("wireless",), "0"),
        ("gaming mouse +black cable -wireless -keyboard", ("wireless", "keyboard"), "02"),
        ("a black gaming mouse -wireless", ("wireless",), "0"),
        ('gaming mouse black cable -"head phones"', ('"head phones"',), "2"),
        ("offices for hire -usa", ("usa",), "3"),
        ("offices for hire -USA", ("USA",), "3"),
        ("offices hire NOT usa", ("usa",), "3"),
        ("offices for hire -U.S.A.", ("U.S.A.",), "3"),
    ],
)
def test_words_after_signs_are_excluded_from_longer_queries(index_of, query, excluded, absent):
    index = index_of(SHOP, ranker="bm25")
    found = index.search(query)
    assert found.interpretation.excluded == excluded
    assert found.interpretation.relaxed == {}
    assert {hit.id for hit in found}.isdisjoint(absent)
    assert found.total > 0


@pytest.mark.parametrize(
    "query",
    [
        "gaming, mouse black -wireless",  # a sentence
        "mouse of keyboards and -mice",
        "gaming mouse black cable 5 -10",
        "one two three four five six seven eight nine -wireless",
    ],
)
def test_hyphens_of_texts_are_no_operators(index_of, query):
    index = index_of(SHOP, ranker="bm25")
    sign = query.split()[-1]
    assert index.search(query).interpretation.relaxed == {sign: "plain_text"}


def test_options_of_commands_are_words_in_documents_of_code(index_of):
    options = {"ranker": "bm25", "identifiers": "parts"}
    index = index_of(SHOP, **options)
    found = index.search("run javac options -verbose")
    assert (found[0].id, found.interpretation.relaxed) == ("5", {"-verbose": "suffix"})
    assert index.search("run javac -canada").interpretation.excluded == ("canada",)


def test_words_beside_operators_are_read_together(index_of):
    documents = [{"id": str(number), "text": text} for number, text in enumerate(SHOP)]
    index = index_of([*documents, {"id": "6", "text": "headphones"}])
    found = index.search("head phones -mouse")
    assert found.interpretation.variants == {"head phones": "headphones"}


def test_operators_can_be_forced_and_turned_off(index):
    assert {hit.id for hit in index.search("CATS NOT DOGS", 16, operators=True)} == _expected(
        "cats and not dogs"
    )
    off = index.search("cats NOT dogs", 16, operators=False)
    assert (off.total, off.interpretation.boolean) == (12, None)


def test_long_expressions_take_linear_time():
    made = random.Random(1)
    words = [made.choice(("AND", "OR", "NOT", "(", ")", "word")) for _ in range(20_000)]
    assert parse_boolean(" ".join(words), ()) is not None
    assert parse_boolean("(" * 20_000 + "a AND b", ()) is not None


@pytest.mark.parametrize(
    ("query", "first", "relaxed", "excluded"),
    [
        ("git commit -m", "0", {"-m": "suffix"}, ()),
        ("git -m", "1", {}, ("m",)),  # no document has these side by side
        ("-40 °C", "2", {"-40": "number"}, ()),
        ("-1,5 °C", "3", {"-1,5": "number"}, ()),
        ("temperature -40", "3", {}, ("40",)),
        ("-3d printing", "4", {}, ("3d",)),
        ("printing jobs -www.example.com", "4", {}, ("www.example.com",)),
        ("printing -rock'n'roll", "4", {}, ("rock'n'roll",)),
        ("printing U.S.A. -foo@bar.com", "4", {}, ("foo@bar.com",)),
        ("printing -10.5.2", "4", {}, ("10.5.2",)),
        ("printing today -10.5", "6", {"-10.5": "plain_text"}, ()),
        ("java -Djava.io.tmpdir", "5", {"-Djava.io.tmpdir": "plain_text"}, ()),
        ("printing -+log", "1", {"-+log": "not_an_operator"}, ()),
        ("printing -#git", "1", {"-#git": "not_an_operator"}, ()),
        ("printing -(git log)", "1", {"-(git": "not_an_operator"}, ()),
        ("printing -'log'", "1", {"-'log'": "not_an_operator"}, ()),
        ("printing --help", "4", {}, ()),
    ],
)
def test_hyphens_of_options_and_negative_numbers(query, first, relaxed, excluded, index_of):
    texts = [
        "run git commit -m with a message",
        "git log",
        "A temperature of -40 °C",
        "A temperature of -1,5 °C",
        "printing on paper",
        "java -Djava.io.tmpdir=/tmp",
        "printing 10.5.2 at www.example.com, rock'n'roll, foo@bar.com, foo@bar.com, U.S.A. U.S.A.",
    ]
    index = index_of(texts, ranker="bm25")
    found = index.search(query)
    assert found[0].id == first
    assert found.interpretation.relaxed == relaxed
    assert found.interpretation.excluded == excluded


def test_a_finnish_suffix_is_not_excluded(index_of):
    texts = ["Option Base -lause asettaa rajan", "Option-painike", "Muu lause"]
    index = index_of(texts, language="finnish")
    found = index.search("Option Base -lause")
    assert found[0].id == "0"
    assert found.interpretation.relaxed == {"-lause": "suffix"}
    assert index.search("Option -lause").interpretation.excluded == ("lause",)
    assert index.search("Base -lause", operators=True).interpretation.excluded == ("lause",)


@pytest.mark.parametrize(
    ("query", "relaxed"),
    [
        ("cats AND", ["AND"]),
        ("OR cats", ["OR"]),
        ("cats NOT", ["NOT"]),
        ("cats AND dogs OR", ["OR"]),
        ("AND cats OR dogs NOT", ["AND", "NOT"]),
        ("cats OR AND dogs", ["OR"]),
        ('"cats" AND', ["AND"]),
        ("cats and", []),
        ("CATS AND", []),
    ],
)
def test_an_operator_that_is_not_between_words_is_reported(index, query, relaxed):
    found = index.search(query, k=16)
    assert found.interpretation.relaxed == dict.fromkeys(relaxed, "not_an_operator")
    assert {hit.id for hit in found} >= {str(number) for number in (3, 7, 11, 15)}


@pytest.mark.parametrize("words", ["طائرة محرك", "विमान इंजन", "飛機 DVD"])
def test_letters_without_case_are_not_in_capitals(index_of, words):
    first, second = words.split()
    texts = [first, second, words]
    expected = {"NOT": {"0"}, "AND": {"2"}, "OR": {"0", "1", "2"}}
    index = index_of(texts, ranker="bm25")
    for operator, ids in expected.items():
        found = index.search(f"{first} {operator} {second}")
        assert {hit.id for hit in found} == ids, operator
        assert not found.interpretation.relaxed
