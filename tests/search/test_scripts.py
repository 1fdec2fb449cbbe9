"""Words of twelve scripts are found as they are typed, with the default settings."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klsa_search import build
from klsa_search.analysis import Analyzer
from klsa_search.search.query import term_dictionary
from tests.support.examples import one_in

SCRIPTS = {
    "latin": "abcdefgłđøæœıðþħŧŋßéüİſʻ'’",
    "cyrillic": "абвгдеёжийїієґўʼ’\u0301",
    "greek": "αβγδεζηθάέήίςσϊΐ",
    "hebrew": "אבגדהוזחטיךכלםמשׁ\u05b8\u05bc׳",
    "arabic": "ابتثجحخدذرزسشصءأإئةىـ\u064e\u0651\u200c٠١٢",
    "syriac": "ܐܒܓܕܗܘܙܚܛ\u0735\u073c",
    "devanagari": "कखगघचछजझटठडािीुूृेै्ंँ़\u200d\u200c०१२",
    "bengali": "কখগঘঙচছজঝািীুূ্ং\u09bc১২",
    "thai": "กขคงจฉชซาะิีุู่้ำเแโ๑๒",
    "khmer": "កខគឃងចឆជាិីឹ្់១២",
    "han": "犬猫東京都人々〇漢字㐀",
    "kana": "あいうえおかがカガーッｶﾞゝ",
    "hangul": "한국어학교에서물ㅋ\u1112\u1161\u11ab",
    "armenian": "աբգդեզէըթժիլ՚և",
    "emoji": "👩💻👍🏽❤🇩🇪🇫\u200d\ufe0f",
}
PARTICLES = {"ko": "학교에서 공부했다", "ja": "番犬を飼う", "th": "ภาษาไทย", "zh": "全文檢索"}


@st.composite
def words(draw):
    """Words whose first character is a letter, so that they have a term; also in capitals."""
    alphabet = draw(st.sampled_from(sorted(SCRIPTS.values())))
    starts = [
        one for one in alphabet if unicodedata.category(one)[0] in "LS" and one not in "ʻʼـ🏽"
    ]
    word = draw(st.sampled_from(starts)) + draw(st.text(st.sampled_from(alphabet), max_size=8))
    return draw(st.sampled_from((str, str.upper, str.title)))(word)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("scripts")


@one_in(3)
@given(st.lists(words(), min_size=1, max_size=4, unique=True))
def test_a_document_with_the_typed_text_is_found(home, typed):
    texts = {str(number): f"pump 12 {word} valve" for number, word in enumerate(typed)}
    with build(texts, name="words", home=home, replace=True) as index:
        for number, word in enumerate(typed):
            found = {hit.id: hit for hit in index.search(word, k=len(typed), operators=False)}
            if any(index.analyzer.terms(word)):
                assert str(number) in found, (word, index.settings.language)


@pytest.mark.parametrize("text", PARTICLES.values())
def test_each_character_and_each_beginning_is_found(index_of, text):
    index = index_of({"1": text, "2": "pump"})
    for first in range(len(text)):
        for after in range(first + 1, len(text) + 1):
            part = text[first:after].strip()
            if part and not unicodedata.combining(part[0]):
                assert [hit.id for hit in index.search(part)] == ["1"], part


def test_a_single_character_is_found_within_words_in_any_clause(index_of):
    texts = ["犬が公園を走る。", "猫が部屋で寝る。", "番犬を飼う", "犬 と 猫"]
    index = index_of({str(number): text for number, text in enumerate(texts, 1)})
    for query in ("犬", "犬*", '"犬"', "+犬", "text:犬"):
        assert {hit.id for hit in index.search(query)} == {"1", "3", "4"}, query
    found = index.search("犬")
    assert found.interpretation.unknown == ()
    assert set(found.interpretation.prefixes["犬"]) == {"犬", "犬が", "犬を", "番犬"}
    marked = {hit.id: hit.snippet for hit in index.search("犬")}
    assert all("犬" in snippet for snippet in marked.values())
    assert {hit.id for hit in index.search("猫 -犬")} == {"2"}
    assert {hit.id for hit in index.search("犬 公園", match="all")} == {"1"}
    assert {hit.id for hit in index.search("犬 飼う", match="all")} == {"3"}
    for query, expected in (("犬 AND 猫", "4"), ("犬 OR 寝", "1234"), ("犬 公園 OR 猫", "124")):
        found = index.search(query)
        assert {hit.id for hit in found} == {*expected}, query
        assert found.interpretation.boolean == query
    assert index.search("鳥").interpretation.unknown == ("鳥",)


def test_characters_within_longer_words_are_not_expanded(index_of):
    index = index_of({"1": "三月に咲く", "2": "3月10日"})
    assert [hit.id for hit in index.search("3月")] == ["2"]


def test_emoji_and_numbers_have_operators(index_of):
    index = index_of({"1": "👍 great 12", "2": "👎 bad 34", "3": "❤️ love 👍 12 34"})
    for query, expected in (
        ("👍 NOT ❤", "1"),
        ("👎 -👍", "2"),
        ("👍 AND ❤️", "3"),
        ("12 NOT 34", "1"),
    ):
        assert {hit.id for hit in index.search(query)} == {*expected}, query


def test_tokens_of_emoji_cover_their_sequences():
    tokens = Analyzer().tokens("ok 👍🏽 👩\u200d💻 🇩🇪🇫🇷")
    assert [(token.term, token.start, token.end) for token in tokens] == [
        ("ok", 0, 2),
        ("👍", 3, 5),
        ("👩", 6, 8),
        ("💻", 8, 9),
        ("🇩🇪", 10, 12),
        ("🇫🇷", 12, 14),
    ]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('צה"ל', "צהל"),
        ("צה״ל", "צה''ל"),
        ("ג׳ירפה", "גירפה"),
        ("پائیز", "پاييز"),
        ("أمة", "امه"),
        ("ہوا", "هوا"),
        ("അവൻ", "അവന്\u200d"),
        ("น้ำ", "นํ้า"),
        ("臺灣", "台灣"),
        ("三ヶ月", "三ケ月"),
        ("ፀሐይ", "ጸሃይ"),
        ("hoà", "hòa"),
    ],
)
@pytest.mark.parametrize("language", [pytest.param("none", marks=pytest.mark.slow), "auto"])
def test_spellings_of_a_script_find_each_other(index_of, one, other, language):
    index = index_of([one, other, "42"], language=language)
    for query in (one, other, f'"{other}"'):
        result = index.search(query)
        assert {hit.id for hit in result.hits} == {"0", "1"}, query
        assert not result.interpretation.relaxed


def test_gershayim_do_not_end_a_phrase(index_of):
    index = index_of(['דובר צה"ל אמר', 'אמר דובר צה"ל'])
    result = index.search('"דובר צה"ל אמר"')
    assert [hit.id for hit in result.hits] == ["0"]
    assert result.interpretation.phrases == ('"דובר צה"ל אמר"',)


@pytest.mark.parametrize(
    ("language", "text", "queries"),
    [
        ("polish", "Łódź i źdźbło", ["lodz", "Lodz", "zdzblo", "lódz źdzbło"]),
        ("vietnamese", "Điện thoại di động", ["dien thoai", "DIEN", "điên"]),
        ("turkish", "Isparta gülü, şeker", ["isparta", "gulu", "seker"]),
        ("turkish", "istanbul", ["Istanbul"]),
        ("serbian", "Niš", ["nis"]),
        ("danish", "Ångström Æbleskiver Østerbro", ["angstrom", "aebleskiver", "osterbro"]),
        ("polish", "Lodz", ["Łódź"]),
        ("danish", "Ålborg Æbleskiver Østerbro", ["aalborg", "aebleskiver", "oesterbro"]),
        ("danish", "Aalborg", ["Ålborg"]),
        ("swedish", "Skärgård", ["skaergaard"]),
        ("finnish", "väärä", ["vaara"]),
    ],
)
def test_words_are_found_without_their_accents(tmp_path, language, text, queries):
    with build({"2": "pump"}, name="accents", home=tmp_path, language=language) as index:
        index.add([{"id": "1", "text": text}])
        for query in queries:
            for match in ("any", "all"):
                found = index.search(query, match=match)
                assert [hit.id for hit in found] == ["1"], (query, match)
                assert found.interpretation.unknown == ()
            assert not index.search(query, spelling="off").total


@pytest.mark.parametrize("partitions", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_operators_apply_to_words_without_their_accents(index_of, partitions):
    texts = ["målning i rummet metod", "vägg metod", "ett annat metod", "målning vägg"]
    records = [
        {"id": str(number), "title": text, "text": text} for number, text in enumerate(texts)
    ]
    options = {"language": "swedish", "ranker": "bm25", "partitions": partitions, "workers": 1}
    index = index_of(records, **options)
    for query, ids in (
        ("+malning", "03"),
        ("+malning, metod", "03"),
        ("title:malning", "03"),
        ("malning AND metod", "0"),
        ("malning OR vägg", "013"),
        ("metod NOT malning", "12"),
        ("metod -malning", "12"),
        ("metod -title:malning", "12"),
        ("metod -malnign", "012"),  # never corrected
        ('"malning"', "03"),
        ('"malning i rummet"', "03"),  # relaxed
        ("malning AND metod AND rummet", "0"),
        ("malning metod", "0123"),
    ):
        found = index.search(query)
        assert "".join(sorted(hit.id for hit in found)) == ids, query
    assert not index.search("+malning", spelling="off").total
    found = index.search("+malning vägg", match="all")
    assert [hit.id for hit in found] == ["3"]
    assert found.interpretation.unknown == ()


def test_words_that_documents_contain_keep_their_accents(index_of):
    index = index_of({"1": "väärä", "2": "vaara"}, language="finnish")
    assert [hit.id for hit in index.search("vaara")] == ["2"]
    assert not index_of(["väki"], language="finnish").search("vaaki")  # aa is no å


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        (["מחשב נייד", "המחשב נשבר", "והמחשב", "במחשב", "חשב"], [0, 1, 2, 3]),
        (["ספר חדש", "הספר כאן", "ספרים"], [0, 1]),
        (["ኢትዮጵያ ሀገር", "የኢትዮጵያ ሰው", "በኢትዮጵያ"], [0, 1, 2]),
    ],
)
def test_articles_and_prepositions_may_be_joined(index_of, texts, found):
    records = [{"id": str(number), "text": text} for number, text in enumerate(texts)]
    index = index_of(records)
    for number in found:
        word = texts[number].split()[0]
        for match in ("any", "all"):
            results = index.search(word, match=match)
            assert {int(hit.id) for hit in results} == set(found), (word, match)
        if not word.startswith("ס"):
            assert str(number) in {hit.id for hit in index.search(word[:4] + "*")}
    index = index_of(records[1:])
    results = index.search(texts[0].split()[0])
    assert {int(hit.id) for hit in results} == {*found} - {0}
    assert results.interpretation.unknown == ()


def test_prefixes_of_hebrew_are_none_of_yiddish(index_of):
    index = index_of({"bread": "ברויט מיט מילך", "red": "רויט מילך"}, language="yiddish")
    assert [hit.id for hit in index.search("רויט")] == ["red"]
    assert [hit.id for hit in index.search("מילך -רויט")] == ["bread"]


def test_a_writing_with_the_stem_of_a_part_is_not_shown(index_of):
    index = index_of(["خانه‌ها بزرگ است", "آن می‌شود خانه"], language="persian")
    results = index.search("خانه‌ها", match="all")
    assert ([hit.id for hit in results], results.interpretation.variants) == (["0", "1"], {})


def test_the_writings_of_every_word_are_searched(index_of):
    words = [
        "מחשב",
        "ספרים",
        "מכונה",
        "חלון",
        "שולחן",
        "כיסא",
        "מקרר",
        "טלפון",
        "מכונית",
        "אופניים",
    ]
    forms = [f"{prefix}{word}" for word in words for prefix in ("ה", "וה", "ב", "ל", "מ")]
    records = [{"id": form, "text": form} for form in forms]
    records += [{"id": word, "text": f"{word} {word}"} for word in words]
    index = index_of(records, language="hebrew")
    for query in (" ".join(words), " ".join(reversed(words))):
        found = index.search(query, 100)
        assert {hit.id for hit in found} == {record["id"] for record in records}


def test_the_most_frequent_writing_is_shown(index_of):
    records = [{"id": str(number), "text": "המחשב"} for number in range(3)]
    records += [{"id": "b", "text": "והמחשב"}, {"id": "c", "text": "מחשב"}]
    index = index_of(records, language="hebrew")
    for query in ("מחשב", "+מחשב"):
        assert index.search(query).interpretation.variants == {"מחשב": "המחשב"}


def test_many_words_without_their_accents_take_linear_time(tmp_path, monkeypatch):
    chosen = []
    counts_with = term_dictionary.counts_with
    monkeypatch.setattr(
        term_dictionary, "counts_with", lambda *args: chosen.append(args) or counts_with(*args)
    )
    words = [f"v{a}{b}ng" for a in "áàâ" for b in "óòôíìîúùû"]
    plain = [f"v{a}{b}ng" for a in "a" for b in "oiu"]
    records = [{"id": word, "text": f"{word} pump"} for word in words]
    names = ["q" * length for length in range(2, 14)]
    records += [{"id": f"{x}{n}", "text": f"{n}{x}"} for n in names for x in "áà"]
    with build(records, name="accents", home=tmp_path, language="vietnamese") as index:
        query = " ".join(["pump", *plain, *(f"{name}a" for name in names)])
        found = index.search(query, 100).interpretation
    assert found.unknown == ()
    assert len(found.prefixes) == 15
    assert len(chosen) == 10


@pytest.mark.parametrize(
    ("language", "texts", "query", "ids"),
    [
        ("chinese", ["手机 苹果公司", "手机 三星", "平板电脑"], "手机 -苹果公司", "1"),
        ("chinese", ["智能手机 苹果公司", "智能手机 三星"], "智能手机 NOT 苹果公司", "1"),
        ("japanese", ["京都 金閣寺 観光", "京都 観光", "東京"], "京都観光 -金閣寺", "1"),
        ("japanese", ["Windows 10 アップデート", "Windows 10"], "Windows 10 -アップデート", "1"),
        ("korean", ["아이폰 케이스", "아이폰 충전기"], "아이폰 -케이스", "1"),
        ("thai", ["โทรศัพท์ มือถือ", "โทรศัพท์ บ้าน"], "โทรศัพท์ -มือถือ", "1"),
        ("japanese", ["東京 天気予報", "天気 予報"], '"天気予報"', "0"),
        ("korean", ["오늘 서울 날씨 어때 -비", "맑음"], "오늘 서울 날씨 어때 -비", "0"),
    ],
)
def test_operators_count_with_words_of_characters(index_of, language, texts, query, ids):
    index = index_of(texts, language=language)
    assert "".join(sorted(hit.id for hit in index.search(query))) == ids
