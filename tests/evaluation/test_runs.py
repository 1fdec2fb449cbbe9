import ir_measures
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from klsa_search.errors import CollectionError
from klsa_search.evaluation import Judge, Ranking, recorded, told_apart
from tests.evaluation.worlds import judgement

FINITE = st.floats(-(2.0**100), 2.0**100, width=32)
TINY = float(np.finfo(np.float32).tiny)


def falling(values):
    return np.sort(np.asarray(values, dtype=np.float64))[::-1]


@given(arrays(np.float64, st.integers(0, 60), elements=st.one_of(st.integers(-3, 3), FINITE)))
def test_told_apart_falls_at_every_step_and_stays_close(values):
    scores = falling(values)
    told = told_apart(scores)
    assert told.dtype == np.float32
    assert (np.diff(told) < 0).all()
    assert (told <= scores.astype(np.float32)).all()
    assert np.allclose(told, scores, rtol=1e-5, atol=1e-30)
    # None is so small that a tool may read it as 0.
    assert ((told == 0) | (np.abs(told) >= TINY)).all()


def test_scores_that_differ_in_32_bits_are_left_alone():
    scores = np.array([3.5, 2.25, 0.0, -1.0])
    assert told_apart(scores).tolist() == scores.tolist()


def test_ties_move_down_by_the_smallest_step():
    told = told_apart(np.array([1.0, 1.0, 1.0, 0.0, 0.0]))
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
