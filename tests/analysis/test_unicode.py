import unicodedata
from unicodedata import decomposition

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klsa_search.analysis.unicode import UNCHANGED, Alignment, bare, fold_accents, nfkc

# Characters that join, reorder, expand or decompose, among ordinary ones.
TRICKY = "aeｶ가ᄀ각ᆨ\u1161e\u0301\u0323\uff9e\u3099ﬁ①½℡…\u0b47\u0b3eﷺＡé’漢  -"
texts = st.one_of(st.text(), st.text(alphabet=TRICKY), st.text(st.characters(codec=None)))


@given(texts)
def test_alignment_holds_nfkc_of_the_text(text):
    spaced = "".join(f" {sign}" if "<fraction>" in decomposition(sign) else sign for sign in text)
    spaced = spaced.replace("™", " ").replace("℠", " ")
    assert Alignment(text).text == nfkc(text) == unicodedata.normalize("NFKC", spaced)


@given(texts)
def test_pieces_go_forward_and_normalise_to_their_characters(text):
    aligned = Alignment(text)
    last = (0, 0)
    for index, character in enumerate(aligned.text):
        piece = (aligned.start(index), aligned.end(index))
        assert 0 <= piece[0] < piece[1] <= len(text)
        assert piece == last or piece[0] == last[1]
        assert character in nfkc(text[slice(*piece)])
        last = piece


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("ﬁx", ["ﬁ", "ﬁ", "x"]),
        ("cafe\u0301s", ["c", "a", "f", "e\u0301", "s"]),
        ("ｶﾞs", ["ｶﾞ", "s"]),
        ("①②", ["①", "②"]),
        ("ab", ["a", "b"]),
        ("", []),
    ],
)
def test_worked_alignments(text, pieces):
    aligned = Alignment(text)
    found = [text[aligned.start(i) : aligned.end(i)] for i in range(len(aligned.text))]
    assert found == pieces


def test_inert_characters_are_their_own_form():
    inert = [c for c in map(chr, range(0x10000)) if UNCHANGED.fullmatch(c)]
    assert len(inert) > 30_000
    for character in inert:
        assert unicodedata.is_normalized("NFKC", character)
        assert unicodedata.combining(character) == 0
    sample = inert[::97]
    for left, right in zip(inert[: len(sample)], sample, strict=True):
        assert unicodedata.is_normalized("NFKC", left + right)


@pytest.mark.parametrize(
    ("word", "bare"),
    [
        ("café", "cafe"),
        ("Ἀθῆναι", "Αθηναι"),
        ("ёлка", "елка"),
        ("tiếng", "tieng"),
        ("हिन्दी", "हिन्दी"),
        ("ไม้", "ไม้"),
        ("가각", "가각"),
        ("ガ", "ガ"),
        ("øłđħŧıðŋß", "oldhtidnß"),
        ("Łódź ǿ Ææœþ", "Lodz o Aeaeoeth"),
        ("plain", "plain"),
    ],
)
def test_accents_go_from_latin_greek_and_cyrillic_only(word, bare):
    assert fold_accents(word) == bare


@pytest.mark.parametrize(
    ("written", "typed"),
    [
        ("שָׁלוֹם", "שלום"),
        ("كِتَابٌ", "كتاب"),
        ("كـتـاب", "كتاب"),
        ("ٱلرَّحْمَـٰنِ", "الرحمن"),
        ("ܫܠܵܡܵܐ", "ܫܠܡܐ"),
        ("अ॒ग्निम्", "अग्निम्"),
        ("за\u0301мок", "замок"),
        ("й", "й"),
        ("٤٢", "42"),
        ("۴۲", "42"),
        ("४२", "42"),
        ("सिंह", "सिंह"),
        ("तरबूज़ हँसी", "तरबूज हंसी"),
        ("گربهٔ", "گربه"),
        ("مؤمن أرض", "مؤمن أرض"),
        ("می\u200cخواهم", "ميخواهم"),
        *((word, "երեվան") for word in ("երևան", "երեւան", "երեվան")),
        ("کتاب علی", "كتاب علي"),
        ("पम्प हिन्दी पण्डित अङ्क चञ्चल", "पंप हिंदी पंडित अंक चंचल"),
        ("जन्म तुम्हारा अन्य", "जन्म तुम्हारा अन्य"),
        ("צה״ל ג׳ירפה", "צהל גירפה"),
        ("װעלט", "וועלט"),
        ("ہوا خانۂ", "هوا خانه"),
        ("അവൻ উৎসব", "അവന് উত্সব"),
        ("นํ้า นำ้", "น้ํา น้ํา"),
        ("三ヶ月 一ヵ所 臺灣", "三ケ月 一カ所 台灣"),
        ("ሐገር ፀሃይ ዓለም", "ሀገር ጸሀይ አለም"),
        ("10µF 5μm μικρός", "10uF 5um μικρός"),
        ("thuỷ", "thủy"),
        ("Hawai\u02bbi", "Hawai'i"),
        ("wing\u2019s", "wing's"),
    ],
)
def test_optional_marks_and_local_digits_are_not_part_of_a_term(written, typed):
    assert bare(nfkc(written)) == typed
