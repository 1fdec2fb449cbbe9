"""A small index for the tests of all connectors."""

import os

import pytest

import klsa_search as klsa

# Before Haystack is imported: no test tells anybody of itself.
os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"

REPORTS = [
    {
        "id": "heat",
        "title": "Overheating",
        "text": "An engine that overheats has lost coolant, or its pump has failed.",
        "year": 2021,
        "url": "https://example.org/heat",
    },
    {
        "id": "pump",
        "title": "Pump",
        "text": "A worn pump moves too little coolant: the needle climbs into the red.",
        "year": 2019,
    },
    {
        "id": "leak",
        "title": "",
        "text": "Coolant leaks from old hoses; look for stains below the pump.",
        "year": 2024,
    },
    {"id": "tyre", "title": "Tyres", "text": "Bald tyres slip on wet roads.", "year": 2018},
    {
        "id": "grip",
        "title": "Grip",
        "text": "Wet roads and bald tyres ask for longer distances.",
        "year": 2022,
    },
]

MANUAL = {
    "id": "manual",
    "title": "Manual",
    "text": "\f".join(
        f"# Chapter {n}\n\n" + f"The part {n} of the machine is inspected every year. " * 12
        + "The narwhal valve opens at four bars." * (n == 2)
        for n in range(4)
    ),
}  # fmt: skip
"""A document of four pages, divided into passages of 60 words."""


@pytest.fixture
def home(tmp_path):
    """A home with the index `reports`."""
    klsa.build(REPORTS, name="reports", home=tmp_path / "index").close()
    return tmp_path / "index"


@pytest.fixture
def index(home):
    """The index, open."""
    opened = klsa.open_index(home / "reports")
    yield opened
    opened.close()
