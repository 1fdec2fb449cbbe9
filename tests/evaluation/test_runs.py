import gzip
import tempfile
from pathlib import Path

import ir_measures
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from klsa_search.errors import CollectionError
from klsa_search.evaluation.measures import Judge, Ranking, distinct_scores, read_run, recorded
from tests.evaluation.worlds import judgement

FINITE = st.floats(-(2.0**100), 2.0**100, width=32)
TINY = float(np.finfo(np.float32).tiny)


def falling(values):
    return np.sort(np.asarray(values, dtype=np.float64))[::-1]


@given(arrays(np.float64, st.integers(0, 60), elements=st.one_of(st.integers(-3, 3), FINITE)))
@example(np.array([-2.8e-45]))
def test_told_apart_falls_at_every_step_and_stays_close(values):
    scores = falling(values)
    told = distinct_scores(scores)
    assert told.dtype == np.float32
    assert (np.diff(told) < 0).all()
    # Downwards only, from 0 if a score is too small for every tool to see.
    seen = scores.astype(np.float32)
    assert (told <= np.where(np.abs(seen) < TINY, 0, seen)).all()
    assert np.allclose(told, scores, rtol=1e-5, atol=1e-30)
    # None is so small that a tool may read it as 0.
    assert ((told == 0) | (np.abs(told) >= TINY)).all()


def test_scores_that_differ_in_32_bits_are_left_alone():
    scores = np.array([3.5, 2.25, 0.0, -1.0])
    assert distinct_scores(scores).tolist() == scores.tolist()


def test_ties_move_down_by_the_smallest_step():
    told = distinct_scores(np.array([1.0, 1.0, 1.0, 0.0, 0.0]))
    step = np.float32(1) - np.nextafter(np.float32(1), np.float32(0))
    assert told.tolist() == [1.0, 1.0 - step, 1.0 - 2 * step, 0.0, -TINY]


def test_lines_of_a_run_file(tmp_path):
    path = tmp_path / "x.run"
    run = [Ranking("7", ("b", "a"), np.array([2.5, 1.0])), Ranking("8", (), np.zeros(0))]
    assert list(recorded(run, path, tag="bm25")) == run
    assert path.read_text() == "7 Q0 b 1 2.5 bm25\n7 Q0 a 2 1 bm25\n"


def test_an_id_with_white_space_is_refused(tmp_path):
    run = [Ranking("7", ("my file.txt",), np.ones(1))]
    with pytest.raises(CollectionError, match=r"my file\.txt"):
        list(recorded(run, tmp_path / "x.run", tag="t"))


def test_other_tools_find_our_figures_in_the_file(tmp_path):
    rng = np.random.default_rng(0)
    ids = [f"{number:03d}" for number in range(300)]
    run, judgements = [], []
    for query in ("1", "2", "3", "4", "5"):
        # Few distinct values, many zeros: ties everywhere.
        scores = rng.integers(0, 4, len(ids)) * rng.integers(0, 2, len(ids)) / 3
        order = np.argsort(-scores, kind="stable")
        run.append(Ranking(query, tuple(ids[i] for i in order), scores[order]))
        judgements += [judgement(query, ids[i]) for i in rng.choice(len(ids), 20, replace=False)]
    path = tmp_path / "tied.run"
    ours = Judge(judgements).measure(recorded(run, path, tag="t")).means()

    qrels = [ir_measures.Qrel(j.query_id, j.document_id, j.grade) for j in judgements]
    named = {
        "map": ir_measures.AP,
        "ndcg@10": ir_measures.nDCG @ 10,
        "p@10": ir_measures.P @ 10,
        "recall@1000": ir_measures.R @ 1000,
    }
    theirs = ir_measures.pytrec_eval.calc_aggregate(
        list(named.values()), qrels, ir_measures.read_trec_run(str(path))
    )
    assert ours == pytest.approx({name: theirs[m] for name, m in named.items()}, abs=1e-12)


def test_a_run_is_sorted_by_score_and_then_by_id_both_descending(tmp_path):
    path = tmp_path / "x.run"
    path.write_text(
        "2 Q0 a 1 1.5 t\n"
        "1 Q0 d10 9 0.5 t\n"
        "\n"
        "1\tQ0\td9 1 0.5 t\r\n"
        "2 Q0 b 1 -3e0 t\n"
        "1 0 top 77 2 other-tag\n"
        "1 Q0 d2 x 0.5 t"
    )
    first, second = read_run(path)
    assert (first.query_id, first.document_ids) == ("2", ("a", "b"))
    # As strings, "d9" > "d2" > "d10".
    assert (second.query_id, second.document_ids) == ("1", ("top", "d9", "d2", "d10"))
    assert second.scores.tolist() == [2, 0.5, 0.5, 0.5]


def test_scores_that_32_bits_cannot_part_are_tied(tmp_path):
    path = tmp_path / "x.run"
    path.write_text("1 Q0 a 1 1.00000001 t\n1 Q0 b 2 1 t\n")
    assert read_run(path)[0].document_ids == ("b", "a")


def test_a_packed_run_is_known_by_its_first_bytes(tmp_path):
    path = tmp_path / "x.run"
    path.write_bytes(gzip.compress(b"\xef\xbb\xbf1 Q0 a 1 1 t\n"))
    assert [ranking.query_id for ranking in read_run(path)] == ["1"]


def test_an_empty_run(tmp_path):
    path = tmp_path / "x.run"
    path.write_text("\n")
    assert read_run(path) == []


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"1 Q0 b 2 0.5", "5 columns; a run has 6"),
        (b"1 Q0 b 2 0.5 my tag", "7 columns; a run has 6"),
        (b"1,Q0,b,2,0.5,t", "1 columns"),
        (b"1 Q0 b 2 high t", "the score 'high' is not a number"),
        (b"1 Q0 b 2 0,5 t", "the score '0,5' is not a number"),
        (b"1 Q0 b 2 nan t", "the score nan is beyond what 32 bits"),
        (b"1 Q0 b 2 -inf t", "the score -inf is beyond"),
        (b"1 Q0 b 2 1e39 t", "the score 1e39 is beyond"),
        (b"1 Q0 a 2 0.5 t", "document a appears twice for query 1"),
        (b"1 Q0 b\0 2 0.5 t", "NUL"),
        (b"1 Q0 caf\xe9 2 0.5 t", "is not UTF-8: byte 0xe9"),
    ],
)
def test_a_broken_line_is_named(line, reason, tmp_path):
    path = tmp_path / "x.run"
    path.write_bytes(b"1 Q0 a 1 1 t\n" + line + b"\n1 Q0 z 3 0.1 t\n")
    with pytest.raises(CollectionError) as raised:
        read_run(path)
    assert raised.value.message.startswith(f"{path}:2: ")
    assert reason in raised.value.message


def test_a_file_that_cannot_be_read_whole(tmp_path):
    path = tmp_path / "x.run"
    with pytest.raises(CollectionError, match=r"x\.run: cannot be read"):
        read_run(path)
    rows = b"".join(b"1 Q0 %d 1 %d t\n" % (n, n) for n in range(5000))
    path.write_bytes(gzip.compress(rows)[:-500])
    with pytest.raises(CollectionError, match=r"x\.run:\d+: the gzip data is cut short"):
        read_run(path)


def test_a_run_is_judged_as_trec_eval_judges_it(tmp_path):
    rng = np.random.default_rng(3)
    rows = [
        f"{query} Q0 d{document} 1 {rng.integers(0, 5) / 7} t"
        for query in range(5)
        for document in range(100)
    ]
    judgements = [
        judgement(str(query), f"d{document}")
        for query in range(6)
        for document in rng.choice(100, 10, replace=False)
    ]
    path = tmp_path / "x.run"
    path.write_text("\n".join(rng.permutation(rows)))
    ours = Judge(judgements).measure(read_run(path))
    qrels = [ir_measures.Qrel(j.query_id, j.document_id, j.grade) for j in judgements]
    measures = [ir_measures.AP, ir_measures.nDCG @ 10]
    theirs = ir_measures.pytrec_eval.calc_aggregate(
        measures, qrels, ir_measures.read_trec_run(str(path))
    )
    assert ours.means()["map"] == pytest.approx(theirs[measures[0]], abs=1e-12)
    assert ours.means()["ndcg@10"] == pytest.approx(theirs[measures[1]], abs=1e-12)
    assert ours.answered == 5


@given(arrays(np.float32, st.integers(1, 30), elements=FINITE))
def test_a_recorded_run_is_read_back(values):
    ids = tuple(f"d{number}" for number in range(len(values)))
    run = [Ranking("q", ids, falling(values))]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.run"
        list(recorded(run, path, tag="t"))
        (found,) = read_run(path)
    assert found.document_ids == ids
