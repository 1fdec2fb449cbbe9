"""Sources that `build` accepts and refuses."""

import pytest

from klsa_search import build
from klsa_search.errors import CollectionError, SettingsError


@pytest.mark.parametrize("source", [None, 5])
def test_an_invalid_source_leaves_no_trace(tmp_path, source):
    with pytest.raises(CollectionError, match=r"source = .*; give a path"):
        build(source, name="it", home=tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def notes(tmp_path):
    """A folder of one text."""
    folder = tmp_path / "place" / "notes"
    folder.mkdir(parents=True)
    (folder / "a.txt").write_text("Engines overheat.")
    return folder


@pytest.mark.parametrize(
    ("home", "fact"),
    [
        ("notes", "is the source itself"),
        ("notes/index", "lies within the source"),
        ("notes/../notes/deep/index", "lies within the source"),
        (".", "lies within"),
        ("..", "lies within"),
    ],
)
def test_a_home_within_the_source_or_around_it_is_refused(notes, home, fact):
    before = sorted(notes.parent.parent.rglob("*"))
    with pytest.raises(SettingsError, match=f"{fact}") as caught:
        build(notes, name="it", home=notes.parent / home)
    assert caught.value.field == "home"
    assert str(notes) in caught.value.message
    assert sorted(notes.parent.parent.rglob("*")) == before


def test_links_hide_neither(notes, tmp_path):
    (tmp_path / "link").symlink_to(notes)
    (tmp_path / "home").mkdir()
    with pytest.raises(SettingsError, match="lies within the source"):
        build(notes, name="it", home=tmp_path / "link" / "index")
    with pytest.raises(SettingsError, match="lies within the source"):
        build(tmp_path / "link", name="it", home=notes / "index")
    (tmp_path / "home" / "it").symlink_to(notes)
    with pytest.raises(SettingsError, match="is the source itself"):
        build(notes, name="it", home=tmp_path / "home")
    assert [entry.name for entry in notes.iterdir()] == ["a.txt"]


def test_a_folder_next_to_the_directory_and_a_file_in_it_are_sources(notes, tmp_path):
    build(notes, name="it", home=notes.parent / "index").close()
    build(notes, name="it", home=tmp_path / "place" / "notes-index").close()
    file = notes.parent / "index" / "a.jsonl"
    file.write_text('{"id": "1", "text": "engines"}\n')
    build(file, name="a", home=notes.parent / "index").close()
    inside = notes.parent / "index" / "a" / "a.jsonl"
    file.rename(inside)
    with pytest.raises(SettingsError, match="lies within"):
        build(inside, name="a", home=notes.parent / "index")
    assert inside.is_file()


def test_a_collection_by_name_has_a_place_too(tmp_path):
    (tmp_path / "med").mkdir()
    (tmp_path / "med" / "MED.ALL").write_text(".I 1\n.W\nwing\n")
    (tmp_path / "med" / "MED.QRY").write_text(".I 1\n.W\na\n")
    (tmp_path / "med" / "MED.REL").write_text("1 0 1 1\n")
    with pytest.raises(SettingsError, match="lies within the source"):
        build("med", name="it", home=tmp_path / "med" / "index", data=tmp_path)


def test_links_in_a_folder_are_followed_with_an_option(notes, tmp_path):
    (tmp_path / "other.txt").write_text("Engines stall.")
    (notes / "link.txt").symlink_to(tmp_path / "other.txt")
    for links in (False, True):
        index = build(notes, name="it", home=tmp_path / "index", follow_links=links)
        assert len(index) == 1 + links
        index.close()
