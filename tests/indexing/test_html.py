"""HTML in fields: in the build, in later writes, syncs and refits, in partitions too."""

from contextlib import closing

import pytest

from klsa_search import Document, build
from klsa_search.errors import SettingsError
from klsa_search.indexing.rewrite import refit

ROWS = [
    {
        "id": str(number),
        "title": f"R&uuml;ckruf {number} &lt;p&gt;now&lt;/p&gt;",
        "text": f"<p class='lead'>Drucker&nbsp;{number}</p><p>geht nicht</p>",
        "note": "x < y & List<a>",
        "tags": "<b>a</b>;b",
    }
    for number in range(12)
]
TITLE, TEXT = "Rückruf {} <p>now</p>", "Drucker {}\n\ngeht nicht"


@pytest.mark.parametrize("partitions", [1, 2])
def test_html_is_read_alike_in_build_and_later_writes(tmp_path, caplog, partitions):
    index = build(
        ROWS[:9], name="a", home=tmp_path, partitions=partitions, workers=1, split={"tags": ";"}
    )
    assert index.settings.html == ("tags", "text", "title")
    assert "fields with HTML are read as text: tags, text, title" in caplog.text
    index.add(ROWS[9:10])
    row = dict(ROWS[10])
    index.write([Document(id=row.pop("id"), title=row.pop("title"), text=row.pop("text"))])
    assert index.sync(ROWS).changed == ("10",)  # which lacked its metadata
    assert index.sync(ROWS).unchanged == len(ROWS)
    index.patch("11", {"note": "new"})  # the title is text already
    index.close()
    with closing(refit(tmp_path / "a")) as index:
        for number in range(12):
            document = index.document(str(number))
            assert (document.title, document.text) == (TITLE.format(number), TEXT.format(number))
            assert document.metadata["tags"] == ["a", "b"]
            assert document.metadata["note"] == ("new" if number == 11 else ROWS[0]["note"])
        assert not index.search("class").hits
        assert index.search("Rückruf").total == len(ROWS)
        index.patch("3", {"text": "<p>S&auml;ge</p>"})
        assert index.document("3").text == "Säge"


def test_html_is_kept_or_read_as_the_setting_says(tmp_path):
    with closing(build(ROWS, name="a", home=tmp_path, html=())) as index:
        assert index.document("1").text == ROWS[1]["text"]
    rows = [{"id": "a", "text": "<p>one</p>"}, *({"id": str(n), "text": "x"} for n in range(9))]
    with closing(build(rows, name="b", home=tmp_path, html=["text"])) as index:
        assert index.document("a").text == "one"
    with pytest.raises(SettingsError, match="no document has a field `body`"):
        build(rows, name="c", home=tmp_path, html=["body"])


def test_rare_html_is_reported(tmp_path, caplog):
    rows = [{"id": "a", "text": "<p>one</p>"}, *({"id": str(n), "text": "x"} for n in range(9))]
    with closing(build(rows, name="a", home=tmp_path)) as index:
        assert index.settings.html == ()
        assert index.document("a").text == "<p>one</p>"
    assert "field 'text': 1 of 10 values hold HTML" in caplog.text
    assert "--html text reads it as text" in caplog.text
