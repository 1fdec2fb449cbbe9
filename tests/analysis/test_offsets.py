"""Word offsets: native segmentation equals the analyser in every script."""

import re
import sys
import unicodedata
from itertools import chain

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from klsa_search._native import locate_words
from klsa_search.analysis.segmentation import (
    CHANGED,
    LETTER_PATTERN,
    REORDERED,
    SEPARATOR,
    SPACE,
    all_characters,
    ascii_characters,
    spans,
)
from klsa_search.analysis.unicode import Alignment, nfkc

ASCII = "abc XYZ 019 _-.,'"
ENDINGS = "a'’sStTmMdDlLrReEvV b"
THAI = "กำ้ัเาน้ำ ก"
HAN = "漢字かがカ゛\u3099ｶﾞｰ、。Ａ！ﾞ"
MARKS = "\u0301\u0308\u00ad\u200d\ufe0f\u20dd\u0338=<"
CHANGING = "½ﬁ™…㍿℃①\u00a8\u0345\uff07ſ"
COMPOSING = "\u1100\u1161\u11a8가\u09c7\u09be\u0958ำຳa\u0301o\u0308"
EMOJI = "👩💻👍🏽❤☀🇩🇪🇫\u200d\ufe0f\u20e3\U000e0067a1 "
HANGUL = "한국어\u1112\u1161\u11abㅋᄒa "
HEBREW = "אבגשׁ\u05b8\ufb2a\"'’״׳”＂sS "
PERSIAN = "می\u200cخواهمآا\u0653\u064b\u0301\ufe8ea 's"
POOLS = [ASCII, ENDINGS, THAI, HAN, MARKS, CHANGING, COMPOSING, EMOJI, HANGUL, HEBREW, PERSIAN]
ORDINARY = [
    "The wing's edge, naïve façades — don’t “quote” me… 50 % of ½ the №1 ™ ﬁx.",
    "Der Flügel überschreitet die Straße; öfter als man’s denkt.",
    "Крыло самолёта — это несущая поверхность (см. рис. 2).",
    "飛行機の翼は、揚力を生み出す。ﾃｽﾄ（全角）！",
    "การบินของเครื่องบิน น้ำ ทำงาน",
    "जलवायु परिवर्तन के कारण ऊँचाई बढ़ती है",
    "דובר צה״ל, צה\"ל 'ג'ירפה' רח' 5",
    "طائرة ذات جناح ثابت",
    "هواپیما\u200cها می\u200cپرند",
    "비행기의 날개는 양력을 만든다",
    "Danke 👍🏽, 👩\u200d💻 aus 🇩🇪🇫🇷!",
    "Комп\u02bcютер і комп’ютер",
    "cafe\u0301 re\u0301sume\u0301 o\u0308l",
]

texts = st.one_of(
    st.lists(st.sampled_from(POOLS), min_size=1, max_size=4).flatmap(
        lambda pools: st.text(st.sampled_from("".join(pools)), max_size=20)
    ),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
)


def found(text, characters, wanted=None):
    """Spans of the words; None where the native code cannot tell."""
    line = np.array([ord(character) for character in text], np.uint32)
    room = 18 * len(line) + 1  # code points that NFKC makes of one at most
    if wanted is None:
        wanted = np.arange(room, dtype=np.int32)
    places = locate_words(line, characters, wanted)
    return None if places is None else list(zip(*(ends.tolist() for ends in places), strict=True))


def expected(text):
    aligned = Alignment(text)
    return [
        (aligned.start(first), aligned.end(after - 1)) for first, after, _ in spans(aligned.text)
    ]


@given(texts)
@example("Za’s\u0301")
@example("½\u0301 漢½ﾞ")
@example("น้ำ ทำ")
@example("it's 'tis o'neil we'll rock'n'roll")
def test_words_are_where_the_analyser_finds_them(text):
    places = found(text, all_characters())
    if places is not None:
        assert places == expected(text)


@given(st.text(st.sampled_from(ASCII + ENDINGS.replace("’", ""))))
def test_ascii_needs_no_more_than_its_own_table(text):
    assert found(text, ascii_characters()) == found(text, all_characters())
    assert found(text, ascii_characters()) == expected(text)


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_text_is_never_too_odd(text):
    assert found(text, all_characters()) == expected(text)


@given(texts, st.sets(st.integers(0, 12), max_size=5))
def test_some_words_are_found_among_all(text, chosen):
    wanted = np.array(sorted(chosen), np.int32)
    every, some = found(text, all_characters()), found(text, all_characters(), wanted)
    if every is not None and some is not None:
        assert some == [every[number] for number in wanted if number < len(every)]


@pytest.mark.parametrize("step", [61, pytest.param(1, marks=pytest.mark.slow)])
def test_the_tables_cover_all_of_unicode(step):
    """The planes of ideographs, and those without characters, by samples."""
    characters = all_characters()
    letter = re.compile(LETTER_PATTERN)
    for point in chain(range(0x20000), range(0x20000, sys.maxunicode + 1, step)):
        character = chr(point)
        if unicodedata.category(character) == "Cs":
            continue
        kind = int(characters.classes[point]) if point < len(characters.classes) else SEPARATOR
        form = nfkc(character)
        assert bool(kind & CHANGED) == (form != character), hex(point)
        # What `str.split` takes for space, and so `snippet`.
        assert (kind & ~(CHANGED | REORDERED) == SPACE) == character.isspace(), hex(point)
        if letter.match(character):
            assert kind != SEPARATOR, hex(point)
        if kind & CHANGED:
            place = np.searchsorted(characters.changed, point)
            kept = characters.forms[characters.starts[place] : characters.starts[place + 1]]
            assert "".join(map(chr, kept)) == form
    assert (characters.classes[:128] == ascii_characters().classes).all()
