"""A recorded run is repeated byte for byte, or the first difference is reported."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klsa_search import build, open_index
from klsa_search.collection import open_collection
from klsa_search.errors import ReplayFailed, SettingsError
from klsa_search.evaluation.run_records import (
    build_as_recorded,
    read_record,
    record_run,
    replay,
    write_record,
)
from klsa_search.search.rankers import RANKERS
from tests.support.examples import one_in

DOCUMENTS = [
    {"id": "heat", "title": "Heat", "text": "Engines overheat when the coolant leaks."},
    {"id": "cold", "title": "Cold", "text": "Coolant thins in the cold; engines stall."},
    {"id": "tyre", "title": "Tyres", "text": "Worn tyres slip on wet roads."},
    {"id": "road", "title": "Roads", "text": "Wet roads are slippery; tyres matter."},
    {"id": "hose", "title": "Hoses", "text": "A worn hose leaks coolant on the road."},
]
ASKED = ["leaking coolant", "wet raods", '"wet roads" -worn', "automobile tyres", "", "engines"]
SETTINGS = {
    "default": {},
    "published": {"preset": "paper", "dimensions": 3},
    "other": {
        "language": "german",
        "k1": 2.0,
        "extra_stop_words": ("coolant",),
        "fields": ("x:number",),
    },
    "empty": {},
}


@pytest.fixture(scope="module", autouse=True)
def several_chunks_of_queries():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("klsa_search.search.ranking.searcher.CHUNK", 4)
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Indexes by the names of their settings, and more queries than one thread takes at a time."""
    folder = tmp_path_factory.mktemp("replay")
    for name, chosen in SETTINGS.items():
        documents = DOCUMENTS if name != "empty" else []
        build(documents, name=name, home=folder, **chosen).close()
    lines = [f"{number}\t{ASKED[number % len(ASKED)]}\n" for number in range(10)]
    (folder / "queries.tsv").write_text("".join(lines))
    return folder


@one_in(3)
@given(
    st.sampled_from(sorted(SETTINGS)),
    st.integers(1, 7),
    st.integers(1, 3),
    st.fixed_dictionaries(
        {},
        optional={
            "ranker": st.sampled_from([name for name, row in RANKERS.items() if not row.is_heavy]),
            "alpha": st.floats(0, 1),
            "z": st.integers(1, 5),
            "operators": st.booleans(),
            "spelling": st.sampled_from(["auto", "off", None]),
        },
    ),
)
def test_a_recorded_run_comes_out_again(folder, name, k, threads, parameters):
    queries, run, kept = folder / "queries.tsv", folder / "out.trec", folder / "out.json"
    with_threads = {"threads": threads, **parameters}
    index = open_index(folder / name)
    written = record_run(index, queries, run, k, **with_threads)
    write_record(written, kept)
    record = read_record(kept)
    assert record == written
    assert record == record_run(index, queries, run, k, **parameters)
    index.close()
    opened = open_index(folder / name)
    done = replay(record, queries, opened, run=run, out=folder / "again.trec")
    opened.close()
    assert (done.files, done.versions) == ((), ())
    assert (folder / "again.trec").read_bytes() == run.read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(SETTINGS))
def test_a_rebuilt_index_repeats_the_run(folder, name, tmp_path):
    index = open_index(folder / name)
    index.set_synonyms(["automobile, engine"])
    record = record_run(index, folder / "queries.tsv", tmp_path / "out.trec", alpha=0.4)
    index.set_synonyms({})
    index.close()
    documents = open_collection(DOCUMENTS if name != "empty" else [])
    anew = build_as_recorded(record, documents, tmp_path)
    done = replay(record, folder / "queries.tsv", anew)
    anew.close()
    assert (done.run.sha256, done.files) == (record.run.sha256, ())


def test_all_parameters_are_in_it(folder, tmp_path):
    index = open_index(folder / "published")
    queries = folder / "queries.tsv"
    record = record_run(index, queries, tmp_path / "out.trec", z=2, dimensions=2)
    index.close()
    assert record.parameters["z"] == 2
    assert record.parameters["alpha"] == 0.9  # by the preset
    assert record.parameters["spelling"] == "off"
    assert (record.k, record.parameters["dimensions"], record.synonyms) == (10, 2, None)
    text = json.dumps(record.model_dump())
    assert str(folder) not in text


@pytest.fixture
def cars(folder, tmp_path):
    """An index of its own with the record of a run, to be spoilt."""
    index = build(DOCUMENTS, name="cars", home=tmp_path)
    index.set_synonyms(["automobile => engine"])
    record = record_run(index, folder / "queries.tsv", tmp_path / "out.trec", 3)
    yield index, record
    index.close()


def refusal(record, queries, index, **more):
    with pytest.raises(ReplayFailed) as caught:
        replay(record, queries, index, **more)
    return caught.value.message


def test_differences_from_the_record_are_named(cars, folder, tmp_path):
    index, record = cars
    queries = folder / "queries.tsv"
    other = tmp_path / "other.tsv"
    other.write_text(queries.read_text() + "\n")
    assert "other.tsv` differs from the recorded" in refusal(record, other, index)

    softer = build(DOCUMENTS, name="softer", home=tmp_path, k1=1.0)
    assert "has k1 = 1.0, and 1.2 was recorded; give" in refusal(record, queries, softer)
    softer.close()

    fewer = build(DOCUMENTS[:-1], name="fewer", home=tmp_path)
    fewer.set_synonyms(index.synonyms)
    assert "has other documents (4) than the recorded" in refusal(record, queries, fewer)
    fewer.close()

    retold = [*DOCUMENTS[:-1], {**DOCUMENTS[-1], "year": 2020}]
    fuller = build(retold, name="fuller", home=tmp_path)
    assert "has other documents (5)" in refusal(record, queries, fuller)
    fuller.close()

    index.update_settings(alpha=0.5)
    assert "change it with `klsa-index settings cars`" in refusal(record, queries, index)
    index.update_settings(alpha=0.7)

    index.set_synonyms({})
    said = refusal(record, queries, index)
    assert "none as synonyms of 'automobile', and engine were recorded" in said
    index.set_synonyms(["automobile => engine"])
    replay(record, queries, index)

    index.add([{"id": "new", "text": "New coolant."}])
    assert "has writes after its build" in refusal(record, queries, index)
    with pytest.raises(ReplayFailed, match="has writes after its build"):
        record_run(index, queries, tmp_path / "out.trec")
    index.delete(["new"])
    assert "has writes after its build" in refusal(record, queries, index)


def test_unused_synonyms_do_not_matter(cars, folder, tmp_path):
    index, _ = cars
    queries = folder / "queries.tsv"
    record = record_run(index, queries, tmp_path / "out.trec", synonyms=False)
    index.set_synonyms({})
    assert replay(record, queries, index).run == record.run


def test_another_run_is_named_by_its_first_line_and_its_differences(cars, folder, tmp_path):
    index, record = cars
    queries, run = folder / "queries.tsv", tmp_path / "out.trec"
    changed = record.model_copy(update={"k": 2})
    assert "first line that differs (all else is as" in refusal(changed, queries, index)
    changed = changed.model_copy(update={"versions": {**record.versions, "numpy": "0.1"}})
    said = refusal(changed, queries, index, run=run, out=tmp_path / "again.trec")
    third, fourth = run.read_text().splitlines()[2:4]
    assert third.startswith("0 Q0 ")
    assert f"line 3 was {third!r} and is {fourth!r}" in said
    assert ", then 0.1" in said
    assert (tmp_path / "again.trec").read_text().splitlines()[:2] == run.read_text().splitlines()[
        :2
    ]
    run.write_text(run.read_text() + "\n")
    assert "out.trec` differs from the recorded run" in refusal(record, queries, index, run=run)


def test_other_versions_and_files_alone_do_not_fail(cars, folder):
    index, record = cars
    entry = record.index.model_copy(update={"files": {**record.index.files, "lengths.npy": "0"}})
    older = record.model_copy(
        update={"index": entry, "versions": {**record.versions, "python": "3.9.1"}}
    )
    done = replay(older, folder / "queries.tsv", index)
    assert done.files == ("lengths.npy",)
    assert [each.split(", then ")[1] for each in done.versions] == ["3.9.1"]


def test_a_tokenizer_is_that_of_then_and_never_imported_for_a_record(folder, tmp_path, monkeypatch):
    code = "def words(text):\n    return [(text, 0, len(text))] if text.strip() else []\n"
    module = tmp_path / "words_of_then.py"
    module.write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    index = build(
        DOCUMENTS, name="own", home=tmp_path, tokenizer="words_of_then:words", language="none"
    )
    record = record_run(index, folder / "queries.tsv", tmp_path / "out.trec")
    replay(record, folder / "queries.tsv", index)
    module.write_text(code + "# mended\n")
    assert "words_of_then:words` has changed" in refusal(record, folder / "queries.tsv", index)
    index.close()
    settings = {**record.index.settings, "tokenizer": "words_of_another:words"}
    entry = record.index.model_copy(update={"settings": settings})
    strange = record.model_copy(update={"index": entry})
    with pytest.raises(SettingsError, match="which is code"):
        build_as_recorded(strange, open_collection(DOCUMENTS), tmp_path / "anew")


def test_settings_of_another_version_are_reported(cars, tmp_path):
    _, record = cars
    entry = record.index.model_copy(update={"settings": {**record.index.settings, "depth": 3}})
    later = record.model_copy(update={"index": entry})
    with pytest.raises(ReplayFailed, match=r"setting 'depth'.* use klsa-search "):
        build_as_recorded(later, open_collection(DOCUMENTS), tmp_path / "anew")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"1 Q0 heat 1 0.5 cars\n", "is not a record of a run"),
        (b"\xff", "is not a record of a run"),
        (b"[1]", "is not a record of a run"),
        (b'{"name": "cars"}', "is not a record of a run"),
        (b'{"record": 2}', r"\(record: Input should be 1\); .* version that wrote it"),
        (b'{"record": 1, "k": "ten"}', r"not a record of a run .*\(queries: Field required\)"),
    ],
)
def test_files_that_are_not_records_are_refused(content, reason, tmp_path):
    path = tmp_path / "out.json"
    path.write_bytes(content)
    with pytest.raises(ReplayFailed, match=reason):
        read_record(path)
