import json

import numpy as np
import pytest

from klsa_search.errors import SettingsError
from klsa_search.evaluation.comparison import compare
from klsa_search.evaluation.measures import RunMeasures


def measured(*values, answered=None, names=None):
    """One value a query, q0, q1, ..."""
    names = names or [f"q{number}" for number in range(len(values))]
    queries = {name: {"map": value} for name, value in zip(names, values, strict=True)}
    return RunMeasures(queries, len(values) if answered is None else answered)


BASE = (0.50, 0.50, 0.50, 0.50, 0.40, 0.0)
OURS = (0.51, 0.49, 0.80, 0.511, 0.20, 0.0)


def contrast_of(base, ours):
    comparison = compare({"bm25": measured(*base), "ours": measured(*ours)}, target="t")
    return comparison.systems["ours"].contrast


def test_worked_example():
    found = contrast_of(BASE, OURS)
    # q0 and q1 are .01 apart and q5 not at all: ties. q3 is won by .011.
    assert (found.wins, found.losses, found.ties) == (2, 1, 3)
    assert found.hurt == pytest.approx(1 / 6)
    assert found.gain == pytest.approx(2.511 / 2.4 - 1)
    assert [at.query for at in found.worst] == ["q4", "q1"]
    assert [at.query for at in found.best] == ["q2", "q3", "q0"]
    assert (found.worst[0].baseline, found.worst[0].value) == (0.40, 0.20)


def test_five_queries_are_named_at_most():
    base = np.full(21, 0.5)
    ours = base + np.linspace(-0.2, 0.2, 21)
    found = contrast_of(base, ours)
    assert [at.query for at in found.worst] == ["q0", "q1", "q2", "q3", "q4"]
    assert [at.query for at in found.best] == ["q20", "q19", "q18", "q17", "q16"]


def test_equal_differences_stay_in_query_order():
    found = contrast_of([0.5] * 8, [0.25] * 4 + [0.75] * 4)
    assert [at.query for at in found.worst] == ["q0", "q1", "q2", "q3"]
    assert [at.query for at in found.best] == ["q4", "q5", "q6", "q7"]


def test_a_system_like_the_baseline():
    found = contrast_of(BASE, BASE)
    assert (found.wins, found.losses, found.ties) == (0, 0, 6)
    assert found.randomisation_test.p == found.t_test.p == 1.0
    assert found.gain == 0.0
    assert found.worst == found.best == ()


def test_a_baseline_that_finds_nothing_has_no_gain_over_it():
    assert contrast_of([0.0, 0.0], [0.5, 0.25]).gain is None


def test_one_query():
    found = contrast_of([0.5], [0.75])
    assert (found.randomisation_test.p, found.t_test.p) == (1.0, 1.0)


def test_the_baseline_leads_and_the_others_are_corrected_together():
    rows = {
        "one": measured(*np.linspace(0.6, 0.9, 8)),
        "base": measured(*[0.5] * 8),
        "two": measured(*np.linspace(0.4, 0.7, 8)),
        "three": measured(*[0.5] * 8, answered=7),
    }
    comparison = compare(rows, target="t", baseline="base")
    assert list(comparison.systems) == ["base", "one", "two", "three"]
    assert comparison.systems["base"].contrast is None
    assert comparison.systems["three"].answered == 7
    one, three = (comparison.systems[name].contrast for name in ("one", "three"))
    # All eight won: 2 of 256 flips; smallest of three.
    assert one.randomisation_test.p == 2 / 256
    assert one.randomisation_test.holm == 3 * 2 / 256
    assert three.randomisation_test.holm == three.t_test.holm == 1.0


def test_an_unknown_baseline_is_named():
    with pytest.raises(SettingsError, match="not one of the systems: bm25, ours") as raised:
        compare({"bm25": measured(1.0), "ours": measured(1.0)}, target="t", baseline="bm52")
    assert raised.value.field == "baseline"


def test_all_of_it_goes_into_json():
    comparison = compare({"bm25": measured(*BASE), "ours": measured(*OURS)}, target="t")
    value = json.loads(json.dumps(comparison.as_json(), allow_nan=False))
    assert list(value) == ["tie", "samples", "target", "measure", "baseline", "systems"]
    assert (value["tie"], value["samples"]) == (0.01, 100_000)
    assert list(value["systems"]) == ["bm25", "ours"]
    ours = value["systems"]["ours"]
    assert list(ours) == ["mean", "interval", "answered", "contrast", "values"]
    assert ours["values"]["q3"] == 0.511
    assert ours["contrast"]["worst"][0] == {"query": "q4", "baseline": 0.4, "value": 0.2}
    assert set(ours["contrast"]["t_test"]) == {"p", "holm"}
    assert value["systems"]["bm25"]["contrast"] is None
