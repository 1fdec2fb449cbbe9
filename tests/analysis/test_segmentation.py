import pytest

from klsa_search.analysis.segmentation import spans, words


def cut(text):
    return [text[start:end] for start, end, _ in spans(text)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", []),
        ("... --- !?", []),
        ("state-of-the-art read_csv", ["state", "of", "the", "art", "read", "csv"]),
        ("x2 3.14 1,000", ["x2", "3", "14", "1", "000"]),
        ("the wing's DON'T we'll", ["the", "wing's", "DON'T", "we'll"]),
        (
            "the wings' 'quoted' o'neil l'avion",
            ["the", "wings", "quoted", "o", "neil", "l", "avion"],
        ),
        ("it's_x d's2", ["it's", "x", "d", "s2"]),
        ("wing’s naïve", ["wing’s", "naïve"]),
        *(
            (f"комп{sign}ютер wing{sign}s", ["комп", "ютер", f"wing{sign}s"])
            for sign in "'’‘‛′ʹʻʼʽˈ՚׳Ꞌꞌ"
        ),
        ("hand\u00adbook hand\u2010book hand\u2011book", ["hand\u00adbook", *["hand", "book"] * 2]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("עברית العربيّة", ["עברית", "العربيّة"]),
        *(
            (
                f"צה{sign}ל 'שלום' \"שלום\" רח{sign} 5{sign}ל",
                [f"צה{sign}ל", "שלום", "שלום", "רח", "5", "ל"],
            )
            for sign in ('"', "״", "”", "'", "׳", "’", "''")
        ),
        ("so\u00adft می\u200cخواهم क्\u200cष", ["so\u00adft", "می", "خواهم", "क्\u200cष"]),
        ("\u0301x 👩\u200d💻 ❤\ufe0f", ["x", "👩\u200d", "💻", "❤\ufe0f"]),
        ("ok👍🏽👍 1\ufe0f\u20e3", ["ok", "👍🏽", "👍", "1\ufe0f\u20e3"]),
        ("🇩🇪🇫🇷 🇩", ["🇩🇪", "🇫🇷", "🇩"]),
        ("™ © → ■ ★", []),
    ],
)
def test_words(text, found):
    assert cut(text) == found
    assert words(text) == found
    assert not any(is_pair for _, _, is_pair in spans(text))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("漢", ["漢"]),
        ("東京都", ["東京", "京都"]),
        ("人々", ["人々"]),
        ("タワー。へ", ["タワ", "ワー", "へ"]),
        ("abc漢字def", ["abc", "漢字", "def"]),
        ("3月10日", ["3", "月", "10", "日"]),
        ("ภาษา", ["ภา", "าษ", "ษา"]),
        ("ที่นี่", ["ที่นี่"]),
        ("ພາສາ", ["ພາ", "າສ", "ສາ"]),
        ("ភាសា", ["ភាសា"]),
        ("မြန်မာ", ["မြန်", "န်မာ"]),
        ("\U00020000\U00020001", ["\U00020000\U00020001"]),
        ("㋉ 한국 漢", ["한국", "漢"]),
        ("한국어는 API를", ["한국", "국어", "어는", "API", "를"]),
    ],
)
def test_pairs(text, found):
    assert words(text) is None
    assert sorted(cut(text)) == sorted(found)


def test_mixed_text_keeps_its_order():
    text = "KLSA は 検索 engine"
    assert cut(text) == ["KLSA", "は", "検索", "engine"]
    assert [is_pair for _, _, is_pair in spans(text)] == [False, True, True, False]
