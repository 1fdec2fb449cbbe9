from itertools import product

import pytest

from klsa_search import build
from klsa_search.core.drawing import FORMATS, TONES, fonts_of, save_figure
from klsa_search.errors import QueryError, SettingsError
from klsa_search.mining.map import TONES as TONES_OF_MAPS
from klsa_search.mining.plots import PICTURES

from .conftest import documents

BEGINS = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}


@pytest.fixture(scope="module", params=[1, pytest.param(2, marks=pytest.mark.slow)])
def written(request, tmp_path_factory):
    options = {"home": tmp_path_factory.mktemp("home"), "dimensions": 8, "latent_dimensions": 4}
    if request.param > 1:
        options |= {"partitions": request.param, "workers": 1}
    index = build(documents()[:40], name="some", **options)
    index.add(documents()[40:])
    yield index
    index.close()


@pytest.mark.parametrize(
    ("what", "ending"),
    [
        ("spectrum", "svg"),
        *(
            pytest.param(what, ending, marks=pytest.mark.slow)
            for what, ending in product(PICTURES, FORMATS)
            if (what, ending) != ("spectrum", "svg")
        ),
    ],
)
def test_same_index_same_bytes(written, tmp_path, what, ending):
    first, second = tmp_path / f"1.{ending}", tmp_path / f"2.{ending}"
    PICTURES[what](written, first)
    PICTURES[what](written, second)
    assert first.read_bytes() == second.read_bytes()
    assert first.read_bytes().startswith(BEGINS[ending])


@pytest.mark.slow
@pytest.mark.parametrize("what", PICTURES)
def test_every_layout_can_be_drawn(index, tmp_path, what):
    PICTURES[what](index, tmp_path / "picture.png")


def test_a_figure_of_the_spectrum_needs_documents(tmp_path):
    index = build([], name="none", home=tmp_path)
    with pytest.raises(QueryError, match="index `none` has no"):
        PICTURES["spectrum"](index, tmp_path / "picture.png")
    PICTURES["map"](index, tmp_path / "map.png")
    index.close()


def test_a_script_that_one_font_lacks_is_drawn_with_another():
    """STIX, which comes with matplotlib as ours does, has one kana."""
    assert fonts_of(["ünï", "λ", "и"]) == fonts_of([])
    assert len(fonts_of(["a の"])) == 2
    assert "Last Resort High-Efficiency" not in fonts_of(["の"])


def test_missing_glyphs_are_reported_once(tmp_path, recwarn):
    unknown = chr(0x1FFFE)  # no character
    with save_figure(tmp_path / "word.png", 1, 1, [f"b{unknown}"]) as figure:
        figure.text(0.5, 0.5, f"b{unknown}")
    # Not warnings of others, such as of objects of earlier tests that are freed meanwhile.
    (message,) = (str(one.message) for one in recwarn if one.category is UserWarning)
    assert f"{unknown!r}, drawn as boxes" in message


def test_another_ending_is_refused(written, tmp_path):
    with pytest.raises(SettingsError, match="is not a"):
        PICTURES["spectrum"](written, tmp_path / "picture.gif")


def test_maps_have_as_many_tones_as_there_are_colours():
    assert len(TONES) == TONES_OF_MAPS
