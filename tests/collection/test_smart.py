import pytest

from klsa_search.collection import open_collection
from klsa_search.errors import CollectionError

COUNTS = {  # documents, queries, judged queries, judgements, of these relevant
    "cran": (1400, 225, 225, 1837, 1612),
    "cran-1837": (1400, 225, 225, 1837, 1837),
    "cisi": (1460, 112, 76, 3114, 3114),
    "cacm": (3204, 64, 52, 796, 796),
    "med": (1033, 30, 30, 696, 696),
}


@pytest.mark.parametrize("name", sorted(COUNTS))
def test_counts_are_those_of_the_distributed_files(collections_home, name):
    source = open_collection(name, data=collections_home)
    documents = {document.id for document in source.documents()}
    queries = {query.id for query in source.queries()}
    lines = source.judgements()
    judged = {line.query_id for line in lines}
    relevant = sum(line.grade > 0 for line in lines)
    assert (len(documents), len(queries), len(judged), len(lines), relevant) == COUNTS[name]
    assert judged <= queries
    assert {line.document_id for line in lines} <= documents
    assert source.problems.count == 0


def test_cran_by_folder_is_cran_by_name(collections_home):
    by_name = open_collection("cran", data=collections_home)
    by_path = open_collection(collections_home / "cran")
    assert by_path.queries() == by_name.queries()
    assert by_path.judgements() == by_name.judgements()
    assert list(by_path.documents()) == list(by_name.documents())


def test_cran_title_is_counted_once_in_every_document(collections_home):
    # A plain prefix test would miss 1000 and 1369, whose repeated titles have misprints.
    documents = {d.id: d for d in open_collection(collections_home / "cran").documents()}
    assert documents["1"].text.startswith("an experimental study of a wing in a propeller")
    assert documents["1000"].text.startswith("tests were made of a short blunt-nosed")
    assert documents["1369"].text.startswith("the formula of stokes")
    assert [d.id for d in documents.values() if not d.title and not d.text] == ["471", "995"]


def test_cran_words_survive_stray_marks(collections_home):
    documents = {d.id: d for d in open_collection(collections_home / "cran").documents()}
    assert "application to turbulent separations" in documents["240"].text
    assert documents["240"].metadata["author"] == "dean r. chapman"


def test_cisi_and_cacm_text_is_text_only(collections_home):
    cisi = {d.id: d for d in open_collection(collections_home / "cisi").documents()}
    assert cisi["1"].text.endswith("in this country and abroad.")  # and no matrix of citations
    later = {q.id: q.text for q in open_collection(collections_home / "cisi").queries()}["58"]
    assert later.startswith("Directions in Library Networking Bibliographic control")
    assert "Avram" not in later
    assert "JASIS" not in later
    cacm = {d.id: d for d in open_collection(collections_home / "cacm").documents()}
    assert cacm["1"].text == ""
    assert "\noperating system, memory protection" in cacm["1657"].text
    assert "CA681209" not in cacm["1657"].text


def write_cran(folder):
    folder.mkdir()
    (folder / "cran.all.1400").write_bytes(
        b".I 1\n.T\nflow past\na wedge .\n.A\nsmith\n.B\nj. 1\n"
        b".W\nflow past\na wedge .\nit is hot .\n.A\nstray words .\n.I 2\n.T\n.A\n.B\n.W\n"
    )
    (folder / "cran.qry").write_bytes(b".I 001\r\n.W\r\nhot\r\nflow\r\n.I 004\r\n.W\r\ncold\r\n")
    (folder / "cranqrel").write_bytes(b"1 1 1 \n1 2 4\n2 2 -1\n")
    return folder


def test_cran_rules_on_a_small_world(tmp_path):
    source = open_collection(write_cran(tmp_path / "cran"))
    first, second = source.documents()
    assert (source.format, source.name) == ("smart", "cran")
    assert (first.title, first.text) == ("flow past a wedge .", "it is hot .\nstray words .")
    assert first.metadata == {"author": "smith", "source": "j. 1"}
    assert first.origin == f"{tmp_path}/cran/cran.all.1400:1"
    assert (second.id, second.title, second.text) == ("2", "", "")
    # `.I 004` is the second query, and the judgements call it 2.
    assert [(q.id, q.text) for q in source.queries()] == [("1", "hot flow"), ("2", "cold")]
    lines = [(j.query_id, j.document_id, j.grade, j.gain) for j in source.judgements()]
    assert lines == [("1", "1", 1, 4), ("1", "2", 4, 1), ("2", "2", -1, 0)]


def test_byte_order_marks_in_smart_files_are_dropped(tmp_path):
    mark = b"\xef\xbb\xbf"
    folder = write_cran(tmp_path / "cran")
    expected = open_collection(folder)
    answers = list(expected.documents()), expected.queries(), expected.judgements()
    for file in folder.iterdir():  # also at the beginning of a file appended to another
        file.write_bytes(mark + mark + file.read_bytes().replace(b"2 2", mark + b"2 2"))
    marked = open_collection(folder)
    assert (list(marked.documents()), marked.queries(), marked.judgements()) == answers


def test_cran_1837_counts_every_line(tmp_path):
    write_cran(tmp_path / "CRAN")
    source = open_collection("cran-1837", data=[tmp_path / "nowhere", tmp_path])
    assert source.name == "cran-1837"
    assert [(j.grade, j.gain) for j in source.judgements()] == [(1, 1)] * 3


def test_layouts_of_judgements_and_spellings_of_ids(tmp_path):
    (tmp_path / "x.all").write_text(".I 0756\n.W\na\n.K\nkey\n.X\n1 5 1\n")
    (tmp_path / "query.text").write_text(".I 1\n.W\nwhat\n.N\nhe asked\n")
    (tmp_path / "x.rel").write_text("01 0756 0 0\n 1\t28\t0\t0.000000\n1 0 13 1\n2 7\n")
    source = open_collection(tmp_path)
    assert [(d.id, d.text) for d in source.documents()] == [("756", "a\nkey")]
    assert [(q.id, q.text) for q in source.queries()] == [("1", "what")]
    pairs = [(j.query_id, j.document_id, j.grade) for j in source.judgements()]
    assert pairs == [("1", "756", 1), ("1", "28", 1), ("1", "13", 1), ("2", "7", 1)]


def test_a_title_repeated_as_a_sentence_stays_outside_cran(tmp_path):
    (tmp_path / "x.all").write_text(".I 1\n.T\nLibraries\n.W\nLibraries\nare good .\n")
    (document,) = open_collection(tmp_path / "x.all").documents()
    assert document.text == "Libraries\nare good ."


@pytest.mark.parametrize(
    ("content", "line", "reason"),
    [
        (".I 1\n.W\na\n.I\n.W\nb\n", 4, "without a number"),
        (".I 1\n.W\na\n.I 01\n.W\nb\n", 4, "'1' is used before"),
        (".I 1\n.W\na\n.I 2\nlost\n.W\nb\n", 4, "before any field"),
        (".I 1\n.W\na\n.I 2\n.W\n\0b\n", 4, "NUL"),
    ],
)
def test_bad_records_are_named_or_skipped(tmp_path, content, line, reason):
    path = tmp_path / "x.all"
    path.write_text(content)
    with pytest.raises(CollectionError, match=f"x.all:{line}: .*{reason}"):
        list(open_collection(path).documents())
    source = open_collection(path, on_error="skip")
    assert [d.id for d in source.documents()] == ["1"]
    assert source.problems.count == 1
    assert reason in source.problems.reasons[0]


def test_a_name_that_is_not_there_says_where_and_how(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_cran(tmp_path / "cran")
    with pytest.raises(
        CollectionError, match=r"no collection `cran` in /nowhere; .*klsa-eval fetch cran"
    ):
        open_collection("cran", data="/nowhere")
    assert open_collection("./cran").name == "cran"


def test_a_named_collection_without_judgements_is_refused(tmp_path):
    (write_cran(tmp_path / "cran") / "cranqrel").unlink()
    with pytest.raises(CollectionError, match="are missing"):
        open_collection("cran", data=tmp_path)
    assert open_collection(tmp_path / "cran").judgements() == []


@pytest.mark.parametrize("line", ["1 2 x", "1"])
def test_bad_judgements_are_never_skipped(tmp_path, line):
    (write_cran(tmp_path / "cran") / "cranqrel").write_text(f"1 1 1\n{line}\n")
    with pytest.raises(CollectionError, match="cranqrel:2: "):
        open_collection(tmp_path / "cran", on_error="skip").judgements()
