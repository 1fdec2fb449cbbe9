"""Encodings of tables, texts and mail: detected, named or refused."""

from itertools import cycle, islice

import pytest

from klsa_search.collection import open_collection
from klsa_search.collection.encodings import detect_encoding
from klsa_search.errors import CollectionError

TEXTS = {
    "russian": "Насос течёт после замены прокладки|Проверьте давление в системе и затяните гайки"
    "|Клапан застрял в открытом положении|Двигатель не запускается на холоде",
    "ukrainian": "Насос протікає після заміни прокладки|Перевірте тиск у системі|Клапан застряг у"
    " відкритому положенні|Фільтр потрібно міняти кожні шість місяців",
    "japanese": "ポンプが漏れる|弁が開いたまま動かない|フィルターは六か月ごとに交換してください"
    "|エンジンが寒い朝に始動しません",
    "chinese": "水泵漏水需要更换密封圈|阀门卡在打开位置|过滤器每六个月更换一次"
    "|检查系统压力并拧紧螺母",
    "taiwanese": "水泵漏水需要更換密封圈|閥門卡在打開位置|過濾器每六個月更換一次|發動機無法啟動",
    "korean": "펌프에서 물이 샌다|밸브가 열린 상태로 고정되었다|필터는 육 개월마다 교체해야 한다",
    "greek": "Η αντλία στάζει μετά την αλλαγή|Ελέγξτε την πίεση στο σύστημα|Άνοιξε η βαλβίδα",
    "arabic": "المضخة تسرب الماء بعد تغيير الحشية|تحقق من الضغط في النظام|الصمام عالق",
    "german": "Die Pumpe verliert Kühlmittel|Prüfen Sie den Druck im System|Das Ventil lässt sich"
    " nicht öffnen|Für die Wartung wird größeres Werkzeug benötigt",
    "french": "La pompe fuit après le remplacement|Vérifiez la pression du système|La vanne est"
    " bloquée en position ouverte|Le filtre s’use l’été",
    "spanish": "La bomba pierde líquido después del cambio|Compruebe la presión del sistema|La"
    " válvula está bloqueada en posición abierta|El próximo año habrá más",
    "polish": "Pompa przecieka po wymianie uszczelki|Sprawdź ciśnienie w układzie i dokręć nakrętki"
    "|Zawór zablokował się w położeniu otwartym|Filtr należy wymieniać co sześć miesięcy",
    "czech": "Čerpadlo po výměně těsnění teče|Zkontrolujte tlak v systému a dotáhněte matice|Ventil"
    " se zasekl v otevřené poloze|Filtr je třeba měnit každých šest měsíců",
    "hungarian": "A szivattyú szivárog a tömítés cseréje után|Ellenőrizze a nyomást a rendszerben"
    "|A szűrőt hathavonta cserélni kell, különben hibás lesz",
    "turkish": "Pompa conta değişiminden sonra sızdırıyor|Sistemdeki basıncı kontrol edin|Vana açık"
    " konumda sıkışmış|Filtre altı ayda bir değiştirilmelidir",
}
WRITTEN = [
    ("russian", "cp1251"), ("russian", "koi8_r"), ("russian", "cp866"), ("ukrainian", "cp1251"),
    ("ukrainian", "koi8_u"), ("japanese", "cp932"), ("japanese", "euc_jp"), ("chinese", "gbk"),
    ("taiwanese", "big5"), ("korean", "cp949"), ("greek", "cp1253"), ("greek", "iso8859_7"),
    ("arabic", "cp1256"), ("german", "cp1252"), ("german", "cp850"), ("german", "mac_roman"),
    ("french", "cp1252"), ("french", "mac_roman"), ("spanish", "cp1252"), ("polish", "cp1250"),
    ("polish", "iso8859_2"), ("czech", "cp1250"), ("hungarian", "cp1250"), ("turkish", "cp1254"),
    ("russian", "utf-16"), ("german", "utf-16-le"), ("french", "utf-16-be"),
]  # fmt: skip


def table(language, rows):
    """Return a CSV file as text, and the texts of its rows."""
    texts = list(islice(cycle(TEXTS[language].split("|")), rows))
    lines = [f"{number},{text.split()[0]},{text}" for number, text in enumerate(texts)]
    if "," in TEXTS[language]:
        lines = [f'{number},{text.split()[0]},"{text}"' for number, text in enumerate(texts)]
    return "\n".join(["id,title,text", *lines, ""]), texts


def read(path, **reading):
    source = open_collection(path, **reading)
    return [document.text for document in source.documents()], source


@pytest.mark.parametrize(("language", "encoding"), WRITTEN)
def test_the_encoding_of_a_table_is_detected_and_noted(tmp_path, language, encoding):
    for rows in (3, 200):
        data, texts = table(language, rows)
        path = tmp_path / f"{rows}.csv"
        path.write_bytes(data.encode(encoding, "ignore"))
        found, source = read(path)
        assert found == [text.encode(encoding, "ignore").decode(encoding) for text in texts]
        assert any("read as" in note for note in source.notes)


@pytest.mark.parametrize(
    ("language", "encoding"),
    [("russian", "koi8_r"), ("japanese", "euc_jp"), ("french", "utf-16-be")],
)
def test_the_encoding_of_a_text_in_a_folder_is_detected_and_noted(tmp_path, language, encoding):
    text = "\n".join(TEXTS[language].split("|") * 3)
    for name in ("note.txt", "page.md"):
        (tmp_path / name).write_bytes(text.encode(encoding, "ignore"))
    found, source = read(tmp_path)
    expected = text.encode(encoding, "ignore").decode(encoding)
    assert [each.split() for each in found] == [expected.split()] * 2
    [note] = source.notes
    assert note.startswith(f"{tmp_path / 'note.txt'} and 1 more file: read as")


def test_a_table_whose_beginning_is_ascii_is_decided_by_all_of_it(tmp_path):
    path = tmp_path / "a.csv"
    rows = [f"{number},{'plain words ' * 9}" for number in range(2_000)]
    rows += [f"{2_000 + number},Насос течёт после замены" for number in range(9)]
    path.write_bytes("\n".join(["id,text", *rows]).encode("cp1251"))
    found, source = read(path)
    assert found[-1] == "Насос течёт после замены"
    assert "read as Windows-1251, because it is not UTF-8 (first in line 2,002)" in source.notes[0]


def test_a_named_encoding_is_used_and_kept(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes("id,text\n1,משאבה\n".encode("cp1255"))
    found, source = read(path, encoding="cp1255")
    assert (found, source.options) == (["משאבה"], {"encoding": "cp1255"})
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "note.txt").write_bytes("Łódź".encode("cp852"))
    assert read(tmp_path / "b", encoding="cp852")[0] == ["Łódź"]


@pytest.mark.parametrize("name", ["a.csv", "a.txt"])
def test_an_undetectable_encoding_is_refused_with_the_option(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(b"id,text\n1," + bytes(range(0x80, 0x100)) + b"\n")
    with pytest.raises(CollectionError, match=r"2: the encoding .* cannot be told; .*--encoding"):
        read(path, format="csv" if name == "a.csv" else "text")


def test_text_that_does_not_fit_the_named_encoding_is_refused(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"id,text\n1,ok\n2,\x81\xff\n")
    with pytest.raises(CollectionError, match=r"invalid Shift-JIS .*--encoding"):
        read(path, encoding="cp932")
    with pytest.raises(CollectionError, match=r"unknown encoding 'klingon'"):
        read(path, encoding="klingon")
    (tmp_path / "a.jsonl").write_text('{"id": "1", "text": "a"}\n')
    with pytest.raises(CollectionError, match=r"jsonl has an encoding of its own"):
        read(tmp_path / "a.jsonl", encoding="cp932")


@pytest.mark.parametrize(("language", "encoding"), [("russian", "koi8_r"), ("german", "cp1252")])
def test_mail_and_pages_without_a_declared_encoding(tmp_path, language, encoding):
    text = TEXTS[language].replace("|", " ")
    (tmp_path / "a.eml").write_bytes(f"Subject: x\n\n{text}\n".encode(encoding))
    (tmp_path / "b.html").write_bytes(f"<p>{text}</p>".encode(encoding))
    assert read(tmp_path)[0] == [text, text]


@pytest.mark.parametrize("text", ["It’s 20 °C – “cold”", "Öl é à", "Café"])
def test_few_signs_beyond_ascii_are_windows_1252(text):
    assert detect_encoding([text.encode("cp1252")]) == "cp1252"


@pytest.mark.parametrize(
    ("text", "codec"),
    [
        ("Café", "mac_roman"),
        ("Größe", "mac_roman"),
        ("Größe", "cp850"),
        ("déjà vu", "cp850"),
        ("Łódź jest miastem w środkowej Polsce", "iso8859_2"),
        ("CAFÉ", "cp1252"),
    ],
)
def test_capitals_after_small_letters_tell_an_encoding(text, codec):
    assert detect_encoding([text.encode(codec)]) == codec


SHORT = [
    ("水泵漏水", "gbk", "GBK"),
    ("请更换轴承", "gbk", "GBK"),
    ("펌프가 샌다", "cp949", "EUC-KR"),
    ("베어링을 교체하세요", "cp949", "EUC-KR"),
    ("水泵漏水", "big5", "Big5"),
    ("ポンプが漏れる", "cp932", "Shift-JIS"),
    ("東京都", "cp932", "Shift-JIS"),
    ("ポンプが漏れる", "euc_jp", "EUC-JP"),
]


@pytest.mark.parametrize(("text", "codec", "name"), SHORT)
def test_the_encoding_of_one_row_is_detected_by_common_characters(tmp_path, text, codec, name):
    path = tmp_path / "x.csv"
    path.write_bytes(f"id,title,text\n1,{text},{text}\n".encode(codec))
    source = open_collection(path)
    assert [document.text for document in source.documents()] == [text]
    assert f"read as {name}, because it is not UTF-8" in source.notes[0]


def test_too_little_text_in_one_alphabet_is_refused(tmp_path):
    path = tmp_path / "x.csv"
    path.write_bytes("id,text\n1,Насос\n".encode("cp1251"))
    with pytest.raises(CollectionError, match="cannot be told; name it, as in --encoding"):
        list(open_collection(path).documents())


@pytest.mark.parametrize("name", ["a.csv", "a.txt", "a.html"])
@pytest.mark.parametrize(
    ("codec", "language"),
    [
        ("utf-16", "german"),
        ("utf-16", "chinese"),
        ("utf-16-le", "russian"),
        ("utf-16-be", "japanese"),
        ("utf-32", "german"),
    ],
)
def test_text_that_indicates_its_encoding_is_read(tmp_path, codec, language, name):
    (tmp_path / name).write_bytes(f"id,text\n1,{TEXTS[language]}\n".encode(codec))
    source = open_collection(tmp_path / name, format=None if name == "a.csv" else "text")
    (document,) = source.documents()
    assert document.text.removeprefix("id,text\n1,").removeprefix("id,text 1,") == TEXTS[language]


def test_zeros_within_a_text_are_not_taken_for_utf_16(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(b"a\0\0\0bcd\n" + b'{"text": "the pump leaks"}\n')
    source = open_collection(tmp_path / "a.jsonl", on_error="skip")
    assert [document.text for document in source.documents()] == ["the pump leaks"]


def test_escapes_of_terminals_are_text(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"id,text\n1,\x1b[31mred\x1b[0m \x1b$ 5\n")
    assert "red" in next(open_collection(tmp_path / "a.csv").documents()).text


@pytest.mark.parametrize("charset", ["undefined", "unknown", "hex", "a\0b"])
def test_mail_and_pages_with_a_charset_that_decodes_nothing(tmp_path, charset):
    body = "caf\u00e9 \x1b$B is open"
    (tmp_path / "a.eml").write_bytes(
        f"Subject: x\nContent-Type: text/plain; charset={charset}\n\n{body}\n".encode()
    )
    (tmp_path / "b.html").write_bytes(f"<meta charset={charset}><p>{body}</p>".encode())
    texts, _ = read(tmp_path)
    assert all(text.startswith("caf\u00e9") for text in texts)
    assert len(texts) == 2


def test_a_text_of_two_encodings_is_refused_where_it_is_not_utf_8(tmp_path):
    path = tmp_path / "x.csv"
    rows = ["1,Die Größe paßt".encode("cp1252"), "2,Öl läuft über".encode()]
    path.write_bytes(b"\n".join([b"id,text", *rows]))
    with pytest.raises(CollectionError, match=r"x\.csv:2: column 'text' is not UTF-8: byte 0xf6"):
        list(open_collection(path).documents())
    skipped = open_collection(path, on_error="skip")
    assert [document.text for document in skipped.documents()] == ["Öl läuft über"]


@pytest.mark.parametrize(("encoding", "is_noted"), [("latin-1", True), ("utf-8", False)])
def test_utf_8_that_is_named_otherwise_is_noted(tmp_path, encoding, is_noted):
    path = tmp_path / "x.csv"
    path.write_text("id,text\n1,Größe\n2,Öl\n", "utf-8")
    source = open_collection(path, encoding=encoding)
    list(source.documents())
    assert any("but all of it is UTF-8" in note for note in source.notes) == is_noted


def test_the_fault_of_a_named_encoding_says_its_line_and_what_to_do(tmp_path):
    path = tmp_path / "x.csv"
    path.write_bytes(b"id,text\n1,a\n2,b\n3,\x81\n")
    with pytest.raises(CollectionError, match=r"x.csv:4: .*leave out --encoding, which detects it"):
        list(open_collection(path, encoding="cp1252").documents())
