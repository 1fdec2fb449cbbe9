"""A small index of documents about wings and bread."""

import pytest

from klsa_search import build

DOCUMENTS = [
    {"id": "w1", "title": "Wings", "text": "The lift of a wing in supersonic flow.", "year": 1958},
    {"id": "w2", "title": "Drag", "text": "Drag and lift of aerofoils at high speed."},
    {"id": "w3", "title": "", "text": "Supersonic flow over aerofoils; boundary layer and drag."},
    {"id": "b1", "title": "Bread", "text": "Yeast makes the dough of bread rise in the oven."},
    {"id": "b2", "title": "Oven", "text": "Bake the dough; sourdough needs no yeast."},
    {"id": "b3", "title": "Sourdough", "text": "Sourdough bread: flour, water, time."},
    {"id": "e1", "title": "", "text": ""},
]


@pytest.fixture(scope="session")
def index(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    opened = build(DOCUMENTS, name="small", home=home, dimensions=2, z=2)
    yield opened
    opened.close()
