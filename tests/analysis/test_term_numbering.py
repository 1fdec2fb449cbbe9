"""Term numbers: equal to the analyser's terms, in this process and in workers."""

import os
import signal
import subprocess
import sys
from concurrent.futures import as_completed

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klsa_search.analysis import Analyzer
from klsa_search.analysis import workers as numbering
from klsa_search.analysis.searched_text import AnalysedTexts
from klsa_search.analysis.workers import NO_TERM, AnalysisWorkers, TermNumbering
from klsa_search.errors import KlsaError
from tests.support.processes import child_processes, started_children
from tests.support.waiting import PATIENCE

TEXTS = ["Wings of the wing", "", "flow, such wings", "the of"]


def test_a_worked_example():
    numbering = TermNumbering(Analyzer())
    first = numbering.numbered(AnalysedTexts(TEXTS))
    assert first.terms == ["wing", "flow"]
    of, the = (NO_TERM - Analyzer().term_of.stop_code(word) for word in ("of", "the"))
    such = NO_TERM - Analyzer().term_of.stop_code("such")
    assert first.numbers.tolist() == [0, of, the, 0, 1, such, 0, the, of]
    assert first.lengths.tolist() == [4, 0, 3, 2]
    second = numbering.numbered(AnalysedTexts(["drag flow"]))
    assert (second.terms, second.numbers.tolist()) == (["drag"], [2, 1])


@given(st.text(st.sampled_from("aA漢字ก\u0e31 '’s.ﬁ½ the of wing")))
def test_a_number_stands_where_the_word_does(text):
    analyzer = Analyzer()
    found = TermNumbering(analyzer).numbered(AnalysedTexts([text]))
    tokens = analyzer.tokens(text)
    kept = [place for place, number in enumerate(found.numbers) if number >= 0]
    assert kept == [token.position for token in tokens]
    assert [found.terms[found.numbers[place]] for place in kept] == [t.term for t in tokens]


def test_words_that_were_forgotten_keep_their_numbers(monkeypatch):
    monkeypatch.setattr(numbering, "CACHED_WORDS", 2)
    found = TermNumbering(Analyzer()).numbered(
        AnalysedTexts(["wing flow drag wing " + "x" * 300 + " flow"])
    )
    assert found.numbers.tolist() == [0, 1, 2, 0, NO_TERM, 1]


def test_workers_give_what_the_analyser_gives():
    analyzer = Analyzer()
    dictionaries = {}
    with AnalysisWorkers(analyzer, 2) as workers:
        for found in [
            workers.submit(AnalysedTexts([text, f"text{n}"])) for n, text in enumerate(TEXTS * 5)
        ]:
            texts = found.result()
            dictionaries.setdefault(texts.numbering, []).extend(texts.terms)
            assert len(texts.numbers) == sum(texts.lengths)
            terms = [
                dictionaries[texts.numbering][number]
                for number in texts.numbers[: texts.lengths[0]]
                if number >= 0
            ]
            assert terms in [analyzer.terms(text) for text in TEXTS]
    assert set(dictionaries) <= {1, 2}


@pytest.mark.slow
def test_batches_keep_their_order_though_a_process_is_held_up():
    """A process that met a later batch first would number its terms otherwise than is told."""
    with AnalysisWorkers(Analyzer(), 2) as workers:
        batches = ["wings", "drag", "wings drag flow", "flow"]
        first = started_children("analysis.workers", 2)[0]
        os.kill(first, signal.SIGSTOP)
        futures = [workers.submit(AnalysedTexts([text])) for text in batches]
        for _ in zip(range(3), as_completed(futures, PATIENCE), strict=False):
            pass  # all but the one that is held up
        os.kill(first, signal.SIGCONT)
        dictionaries = {}
        for text, future in zip(batches, futures, strict=True):
            found = future.result()
            dictionary = dictionaries.setdefault(found.numbering, [])
            dictionary.extend(found.terms)
            told = [dictionary[number] for number in found.numbers]
            assert told == Analyzer().terms(text)


def test_a_worker_that_dies_is_reported_with_its_signal():
    with AnalysisWorkers(Analyzer(), 1) as workers:
        workers.submit(AnalysedTexts(["wings"])).result()
        os.kill(started_children("analysis.workers", 1)[0], signal.SIGKILL)
        with pytest.raises(KlsaError, match=r"ended early \(signal 9\)"):
            workers.submit(AnalysedTexts(["wings"])).result()


@pytest.mark.parametrize("failure", [ValueError, KeyboardInterrupt])
def test_no_worker_is_left_behind(failure):
    with pytest.raises(failure), AnalysisWorkers(Analyzer(), 2) as workers:
        left = child_processes("analysis.workers")
        workers.submit(AnalysedTexts(["wings"] * 10_000))
        raise failure
    assert not any(map(_alive, left))


@pytest.mark.slow
def test_workers_end_with_their_parent():
    script = (
        "import os\n"
        "from klsa_search.analysis import Analyzer\n"
        "from klsa_search.analysis.workers import AnalysisWorkers\n"
        "from klsa_search.analysis.searched_text import AnalysedTexts\n"
        "workers = AnalysisWorkers(Analyzer(), 2)\n"
        "workers.submit(AnalysedTexts(['wings'])).result()\n"
        "os.kill(os.getpid(), 9)\n"
    )
    # Its workers hold stderr as well: its end is read once the last of them is gone.
    parent = subprocess.run(
        [sys.executable, "-c", script], stderr=subprocess.PIPE, check=False, timeout=120
    )
    assert (parent.returncode, parent.stderr) == (-signal.SIGKILL, b"")


def _alive(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True
