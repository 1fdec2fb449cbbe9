"""Words divided by a hyphen at the end of a line are found."""

import json

import pytest

from klsa_search import build
from klsa_search.collection.text_cleaning import join_divided_words


@pytest.mark.parametrize(
    ("text", "joined"),
    [
        ("infor-\nmation retrieval", "information\nretrieval"),
        ("infor-\r\n  mation, and", "information,\nand"),
        ("con-\nsti-\ntution here", "constitution\nhere"),
        ("a docu-\nmentation\nof", "a documentation\nof"),
        ("soft\xad\nware", "software\n"),
        ("tieto\u2010\nkanta ja", "tietokanta\nja"),
        ("well-\nknown and well-known", "well-known\nand well-known"),
        ("New-\nYork", "New-\nYork"),  # a capital
        ("- item\n- item", "- item\n- item"),
        ("2020-\n2024", "2020-\n2024"),
        ("x-\ny", "x-\ny"),
        ("end -\nbegin", "end -\nbegin"),
        ("---\ntitle", "---\ntitle"),
        ("nothing", "nothing"),
    ],
)
def test_divided_words_are_joined(text, joined):
    assert join_divided_words(text) == joined


def test_long_texts_take_linear_time():
    for part in ("a" * 200_000, "ab-\n" * 50_000, "ab-\n" + " " * 200_000):
        join_divided_words(part + "-\n" + part)


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "txt"])
def test_divided_words_of_files_are_found(tmp_path, suffix):
    text = "infor-\nmation retrieval"
    folder = tmp_path / "source"
    folder.mkdir()
    content = {
        "jsonl": json.dumps({"id": "1", "text": text}),
        "csv": f'id,text\n1,"{text}"\n',
        "txt": text,
    }
    (folder / f"a.{suffix}").write_text(content[suffix], encoding="utf-8")
    source = folder if suffix == "txt" else folder / f"a.{suffix}"
    index = build(source, name="divided", home=tmp_path / "home")
    (hit,) = index.search("information")
    assert "information" in hit.snippet
    index.close()


def test_divided_words_of_later_documents_are_found(tmp_path):
    index = build([{"id": "1", "text": "first"}], name="later", home=tmp_path)
    index.add([{"id": "2", "text": "infor-\nmation"}])
    assert [hit.id for hit in index.search("information")] == ["2"]
    index.close()
