import gzip
from collections import Counter

import pytest

from klsa_search.errors import CollectionError
from studies.datasets import find_dataset, read_ionosphere, read_reuters

pytestmark = pytest.mark.slow

STORIES = """<!DOCTYPE lewis SYSTEM "lewis.dtd">
<REUTERS TOPICS="YES" LEWISSPLIT="TRAIN" CGISPLIT="TRAINING-SET" OLDID="5544" NEWID="1">
<TOPICS><D>grain</D><D>corn</D></TOPICS><PLACES><D>usa</D></PLACES>
<TEXT>&#2;
<TITLE>CORN &lt;UP>
  AGAIN</TITLE>
<DATELINE>CHICAGO - </DATELINE><BODY>Corn rose.
 Reuter
&#3;</BODY></TEXT>
</REUTERS>
<REUTERS TOPICS="YES" LEWISSPLIT="TEST" CGISPLIT="TRAINING-SET" OLDID="5545" NEWID="2">
<TOPICS></TOPICS>
<TEXT TYPE="BRIEF"><TITLE>BRIEF</TITLE></TEXT>
</REUTERS>
<REUTERS TOPICS="NO" LEWISSPLIT="TRAIN" CGISPLIT="TRAINING-SET" OLDID="5546" NEWID="3">
<TOPICS><D>earn</D></TOPICS>
<TEXT TYPE="UNPROC">all of it\x1b</TEXT>
</REUTERS>
"""


def test_stories_topics_and_parts(tmp_path):
    with gzip.open(tmp_path / "reut2-000.sgm.gz", "wt", encoding="latin-1") as file:
        file.write(STORIES)
    first, brief, unprocessed = read_reuters(tmp_path)
    assert first == ("1", "CORN <UP> AGAIN", "Corn rose.\n Reuter", ("corn", "grain"), "train")
    assert brief == ("2", "BRIEF", "", (), "test")
    assert unprocessed == ("3", "", "all of it", ("earn",), None)


def test_a_damaged_file_of_stories_is_named(tmp_path):
    whole = gzip.compress(STORIES.encode("latin-1"))
    (tmp_path / "reut2-003.sgm.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(CollectionError, match=r"reut2-003\.sgm\.gz.*fetch the file again"):
        list(read_reuters(tmp_path))


def test_the_real_reuters(datasets_home):
    stories = list(read_reuters(find_dataset("reuters21578", [datasets_home])))
    assert Counter(story.part for story in stories) == {"train": 9603, "test": 3299, None: 8676}
    assert Counter(t for s in stories if s.part == "train" for t in s.topics)["earn"] == 2877


def write_points(folder, *lines):
    (folder / "ionosphere.csv").write_text("\n".join(["header", *lines]) + "\n")


def test_points_and_classes(tmp_path):
    write_points(tmp_path, ",".join(["1"] * 34) + ",g", ",".join(["-.5"] * 34) + ",b", "")
    points = read_ionosphere(tmp_path)
    assert points.classes == ("g", "b")
    assert points.values.shape == (2, 34)
    assert points.values[:, 33].tolist() == [1.0, -0.5]


@pytest.mark.parametrize(
    "line",
    [
        ",".join(["1"] * 33) + ",g",
        ",".join(["1"] * 34) + ",x",
        ",".join(["nan"] * 34) + ",g",
        ",".join(["one"] * 34) + ",g",
    ],
)
def test_an_invalid_line_is_named(tmp_path, line):
    write_points(tmp_path, ",".join(["1"] * 34) + ",g", line)
    with pytest.raises(CollectionError, match=r"ionosphere\.csv:3: .*mend the line"):
        read_ionosphere(tmp_path)


def test_a_file_without_points(tmp_path):
    write_points(tmp_path)
    with pytest.raises(CollectionError, match="no line after the header"):
        read_ionosphere(tmp_path)


def test_the_real_ionosphere(datasets_home):
    points = read_ionosphere(find_dataset("ionosphere", [datasets_home]))
    assert points.values.shape == (351, 34)
    assert Counter(points.classes) == {"g": 225, "b": 126}
    assert not points.values[:, 1].any()


def test_the_first_folder_that_has_it(tmp_path):
    for place in ("near", "far"):
        folder = tmp_path / place / "ionosphere"
        folder.mkdir(parents=True)
    (folder / "ionosphere.csv").touch()
    assert find_dataset("ionosphere", [tmp_path / "near", tmp_path / "far"]) == folder


def test_a_missing_data_set_says_where_it_was_looked_for(tmp_path):
    with pytest.raises(CollectionError) as caught:
        find_dataset("reuters21578", [tmp_path / "a", tmp_path / "b"])
    message = caught.value.message
    assert f"{tmp_path / 'a' / 'reuters21578'} or {tmp_path / 'b' / 'reuters21578'}" in message
    assert "$KLSA_DATASETS" in message
    with pytest.raises(CollectionError, match="any folder, for none was named"):
        find_dataset("ionosphere", [])
