import json

import pytest

import klsa_search
from klsa_search.cli.search_output import as_dict


@pytest.fixture
def search(built):
    return lambda *arguments: built("klsa-search", "cars", *arguments)


def test_json_for_programs(search):
    answer = search("coolant", "--json", "--ranker", "bm25", "-k", 1).json
    assert answer["index"] == "cars"
    assert (answer["query"], answer["ranker"], answer["total"]) == ("coolant", "bm25", 2)
    (hit,) = answer["hits"]
    assert list(hit) == ["rank", "id", "score", "title", "snippet", "metadata"]
    assert hit["rank"] == 1
    assert hit["id"] in ("heat", "cold")


def test_a_pipe_gets_one_plain_line_a_hit(search):
    header, *rows = search("coolant", "--ranker", "bm25").out.splitlines()
    assert header.split() == ["rank", "id", "score", "title", "snippet"]
    assert [row.split()[0] for row in rows] == ["1", "2"]
    assert all("\x1b" not in row and row == row.rstrip() for row in rows)
    # Brackets are text, not markup.
    assert any("[thins]" in row for row in rows)


def test_the_interpretation_is_printed(search):
    said = search("coolant -thermostat", "--json").json["interpretation"]
    assert (said["words"], said["excluded"]) == (["coolant"], ["thermostat"])
    said = search("coolant -thermostat", "--json", "--no-operators").json["interpretation"]
    assert said["excluded"] == []


def test_corrections_are_printed_with_the_results(search):
    done = search("coolnat")
    undo = "; --spelling suggest searches as typed"
    assert done.err == f"no match for `coolnat`; showing results for `coolant`{undo}\n"
    assert done.out == search("coolant").out
    done = search("coolnat", "--spelling", "suggest")
    assert (done.out, done.err) == (
        "no documents found\n",
        "no match for `coolnat`; did you mean `coolant`?\n",
    )
    assert search("coolnat", "--spelling", "off").err == ""


def test_one_option_undoes_several_corrections(search):
    done = search("coolnat egnines")
    undo = "; --spelling suggest searches as typed"
    shown = ["no match for `coolnat`; showing results for `coolant`"]
    shown.append(f"no match for `egnines`; showing results for `engines`{undo}")
    assert done.err.splitlines() == shown
    done = search("coolnat egnines", "--spelling", "suggest")
    assert done.out == "no documents found\n"
    assert [line.partition("; ")[2] for line in done.err.splitlines()] == [
        "did you mean `coolant`?",
        "did you mean `engines`?",
    ]


def test_not_in_lower_case_says_what_excludes(search):
    said = "`not roads` was read as plain words: to exclude the word, search for "
    assert search("coolant not roads").err == f"{said}`coolant -roads`\n"
    for other in ("coolant not  roads", "coolant, not roads", "coolant but not roads"):
        assert search(other).err == f"{said}`coolant -roads`\n"
    assert "search for `knot roads -roads`" in search("knot roads not roads").err
    assert search("coolant not leaking").err == search("why does it not start").err == ""


@pytest.mark.parametrize(
    "more", [{}, {"k": 2}, {"ranker": "bm25"}, {"alpha": 0.9, "z": 1}, {"ranker": "rm3"}]
)
def test_answer_is_that_of_the_library_to_the_bit(more, search, tmp_path):
    options = [part for name, value in more.items() for part in (f"--{name}", value)]
    options = ["-k" if option == "--k" else option for option in options]
    asked = "wet roads and coolant in engines"
    answer = search(asked, "--json", *options).json
    index = klsa_search.open_index(tmp_path / "index" / "cars")
    expected = as_dict(index.search(asked, **more))
    assert {name: answer[name] for name in expected} == json.loads(json.dumps(expected))


def test_words_of_the_query_are_marked(search):
    (hit,) = search("coolant", "--json", "-k", 1, "--highlight").json["hits"]
    snippet = hit["highlight"]["snippet"]
    assert snippet["text"] == hit["snippet"]
    assert {hit["snippet"][start:end].casefold() for start, end in snippet["marks"]} == {"coolant"}
    assert search("coolant", "--highlight").out == search("coolant").out  # which is no terminal
    short = search("coolant", "--json", "--snippet-length", 12).json["hits"]
    assert all(len(hit["snippet"].strip("…")) <= 12 for hit in short)


def test_the_quality_of_matches_is_printed(search):
    answer = search("coolant", "--json", "--quality").json
    assert answer["quality"] == max(hit["quality"] for hit in answer["hits"])
    assert answer["good_match"] is (answer["quality"] >= 0.5)
    rows = search("coolant zeppelin aspidistra", "--quality").out.splitlines()
    assert rows[0].split() == ["rank", "id", "score", "quality", "title", "snippet"]
    assert rows[-1] == "no good match"


def test_a_score_is_explained(search):
    (hit,) = search("coolant", "--json", "-k", 1, "--explain").json["hits"]
    alone = search("coolant", "--json", "--explain-id", hit["id"]).json
    assert hit["explanation"].items() <= alone.items()
    parts = [alone[part] for part in ("lexical", "coverage", "latent", "expansion")]
    assert sum(part["value"] for part in parts) == pytest.approx(hit["score"], rel=1e-6)
    table = search("coolant", "--explain-id", hit["id"]).out
    assert table in search("coolant", "-k", 1, "--explain").out
    assert [row.split()[0] for row in table.splitlines()] == [
        "part", "score", "lexical", "coverage", "latent", "expansion"
    ]  # fmt: skip


@pytest.mark.parametrize("wish", [["--explain"], ["--sort", "x"], ["--offset", 1]])
def test_one_document_is_explained_alone(search, wish):
    done = search("coolant", "--explain-id", "heat", *wish)
    assert done.code == 2
    assert "--explain-id" in done.err


def test_a_query_may_be_several_arguments(search):
    assert search("coolant", "leaks", "-k", 1).out == search("coolant leaks", "-k", 1).out
    assert search("--", "-coolant", "tyres").out == search("--", "-coolant tyres").out


@pytest.mark.parametrize("words", [[], [""], [" ", "\t"], ["", "--format", "csv"]])
def test_a_query_without_words_is_refused_unless_documents_are_chosen(search, words):
    done = search(*words)
    assert (done.code, done.out) == (2, "")
    assert "error: QUERY is missing or blank; give the name of an index and words" in done.err
    assert search(*words, "--filter", "id IN [heat]").code == 0


@pytest.mark.parametrize("query", ["-coolant", "-coolant tyres", "-kettle", "-Xmx"])
def test_a_query_that_was_read_as_an_option_is_shown_the_way(search, query):
    done = search(query)
    assert done.code == 2
    assert f"; write -- before {query!r} if it is a text\n" in done.err


@pytest.mark.parametrize("query", ["the of", "zeppelin"])
def test_an_empty_answer_says_so(search, query):
    done = search(query)
    assert (done.code, done.out, done.err) == (0, "no documents found\n", "")
    assert search(query, "--json").json["hits"] == []


@pytest.mark.parametrize("arguments", [["-k", 0], ["--alpha", 1.5], ["--z", 0], ["--ranker", "x"]])
def test_wrong_usage(search, arguments):
    assert search("coolant", *arguments).code == 2


@pytest.mark.parametrize("threads", [1, 2])
def test_a_batch_becomes_a_run_file(search, tmp_path, threads):
    (tmp_path / "queries.tsv").write_text("q1\tcoolant\nq2\tzeppelin\nq3\twet tyres\n")
    options = ["--batch", "queries.tsv", "--ranker", "bm25", "-k", 1, "--threads", threads]
    done = search(*options, "--run", "runs/out.trec")
    assert (done.code, done.out) == (0, "3 queries, 2 hits: runs/out.trec\n")
    rows = [line.split() for line in (tmp_path / "runs/out.trec").read_text().splitlines()]
    assert [row[:4] for row in rows] == [
        ["q1", "Q0", search("coolant", "--json", "--ranker", "bm25").json["hits"][0]["id"], "1"],
        ["q3", "Q0", search("wet tyres", "--json", "--ranker", "bm25").json["hits"][0]["id"], "1"],
    ]
    assert {row[5] for row in rows} == {"bm25"}
    assert search("--batch", "queries.tsv", "--run", "out.trec", "--threads", threads).code == 0
    assert {line.split()[5] for line in (tmp_path / "out.trec").read_text().splitlines()} == {
        "klsa"
    }


def test_filters_facets_and_order(shell, tmp_path):
    (tmp_path / "tickets.jsonl").write_text(
        '{"id": "a", "text": "Coolant leaks.", "metadata": {"year": 2019, "kind": "note"}}\n'
        '{"id": "b", "text": "Coolant boils.", "metadata": {"year": 2021, "kind": "note"}}\n'
        '{"id": "c", "text": "Coolant again.", "metadata": {"year": 2023, "kind": "report"}}\n'
    )
    shell("klsa-index", "build", tmp_path / "tickets.jsonl", "--name", "tickets")

    def asked(*arguments):
        return shell("klsa-search", "tickets", *arguments)

    answer = asked("coolant", "--filter", "year > 2019", "--sort", "year:desc", "--json").json
    assert [hit["id"] for hit in answer["hits"]] == ["c", "b"]
    assert (
        asked("", "--sort", "year", "--offset", 1, "-k", 1, "--json").json["hits"][0]["id"] == "b"
    )
    table = [line.split()[:4] for line in asked("coolant", "--sort", "year:desc").out.splitlines()]
    assert [(row[1], row[3]) for row in table] == [
        ("id", "year"), ("c", "2023"), ("b", "2021"), ("a", "2019"),
    ]  # fmt: skip
    facets = asked("coolant", "--facet", "kind", "--distinct", "kind")
    assert [line.split() for line in facets.out.splitlines()[-3:]] == [
        ["kind", "documents"], ["note", "2"], ["report", "1"],
    ]  # fmt: skip
    assert asked("coolant", "--min-score", 99).out == "no documents found\n"
    done = asked("coolant", "--filter", "year >")
    assert (done.code, "incomplete" in done.err) == (2, True)


def test_a_batch_names_the_documents_of_an_index_written_to(search, shell, tmp_path):
    (tmp_path / "new.jsonl").write_text('{"id": "zeppelin", "text": "A zeppelin hovers."}\n')
    (tmp_path / "queries.tsv").write_text("q1\twet tyres\nq2\tzeppelin\nq3\tcoolant\n")
    shell("klsa-index", "add", "cars", tmp_path / "new.jsonl")
    shell("klsa-index", "delete", "cars", "heat")
    search("--batch", "queries.tsv", "--run", "out.trec", "-k", 1)
    rows = [line.split() for line in (tmp_path / "out.trec").read_text().splitlines()]
    alone = [search(text, "--json").json["hits"][0]["id"] for text in ("wet tyres", "zeppelin")]
    assert [row[2] for row in rows] == [*alone, "cold"]
    assert alone[1] == "zeppelin"


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["x", "--batch", "q.tsv", "--run", "r"],
        ["--batch", "q.tsv"],
        ["x", "--run", "r"],
        ["--batch", "q.tsv", "--run", "r", "--json"],
        ["--batch", "q.tsv", "--run", "r", "--filter", "year = 1"],
        ["--batch", "q.tsv", "--run", "r", "--threads", 0],
    ],
)
def test_wrong_usage_of_a_batch(search, arguments):
    assert search(*arguments).code == 2


def test_a_batch_with_a_bad_line_is_named(search, tmp_path):
    (tmp_path / "queries.tsv").write_text("coolant\n")
    done = search("--batch", "queries.tsv", "--run", "out.trec")
    assert done.code == 1
    assert "queries.tsv:1: no tab" in done.err
    assert not (tmp_path / "out.trec").exists()


def test_a_parameter_of_nought_or_no_counts(search):
    answer = search("coolant leak", "--json", "--alpha", 0, "--no-unit-length").json
    assert (answer["parameters"]["alpha"], answer["parameters"]["unit_length"]) == (0, False)


def test_a_query_without_the_name_of_an_index_says_what_is_missing(built):
    done = built("klsa-search", "coolant", "leaks")
    assert (done.code, done.out) == (1, "")
    assert "no index at" in done.err
    assert "name one that exists before the words: cars" in done.err
