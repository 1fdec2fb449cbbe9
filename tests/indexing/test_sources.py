"""What `build` takes as a source, and what it does not."""

import os

import pytest

from klsa_search import build
from klsa_search.errors import CollectionError


@pytest.mark.parametrize("source", [None, 5])
def test_what_is_no_source_leaves_no_trace(tmp_path, source):
    with pytest.raises(CollectionError, match="the source is of type"):
        build(source, name="it", home=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_whose_name_is_not_utf_8(tmp_path):
    folder = os.fsencode(tmp_path) + b"/caf\xe9"
    try:
        os.mkdir(folder)
    except OSError:
        pytest.skip("this file system takes names in UTF-8 only")
    with open(folder + b"/a.txt", "w") as stream:
        stream.write("Engines overheat.")
    index = build(os.fsdecode(folder), name="it", home=tmp_path / "index")
    assert (len(index), index.manifest.source) == (1, "caf\ufffd")
    index.close()
