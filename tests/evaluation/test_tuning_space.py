import pytest

from klsa_search.core.config import Settings
from klsa_search.evaluation.candidates import ALPHAS, LENGTHS, Candidate, alphas, draw


@pytest.mark.parametrize("preset", ["default", "paper"])
@pytest.mark.parametrize("seed", [0, 1])
def test_candidates_are_settings_and_the_first_is_the_default(preset, seed):
    settings = Settings.of_preset(preset)
    candidates = draw(settings, seed)
    assert candidates[0].changes(settings) == {}
    changes = [candidate.changes(settings) for candidate in candidates]
    assert all(changes[1:])
    assert all(changes.count(change) == 1 for change in changes)
    for change in changes:
        Settings.checked({**settings.model_dump(), **change})
    assert candidates == draw(settings, seed)
    assert candidates != draw(settings, seed + 10)


def test_a_gamma_that_von_neumann_cannot_take_is_replaced():
    settings = Settings.of_preset("default", gamma=5.0, spectral="squashing")
    drawn = [candidate.changes(settings) for candidate in draw(settings)]
    von_neumann = [change for change in drawn if change.get("spectral") == "von-neumann"]
    assert von_neumann
    assert all(change["gamma"] < 1 for change in von_neumann)


def test_lengths_of_the_index_come_first_and_each_is_tried_in_one_go():
    settings = Settings.of_preset("default", k1=3.0, b=0.1)
    lengths = list(dict.fromkeys(candidate.lengths for candidate in draw(settings)))
    assert lengths == [(3.0, 0.1), *LENGTHS]


def test_another_ranker_is_left_for_klsa():
    settings = Settings.of_preset("default", ranker="bm25")
    first, second, *_ = draw(settings)
    assert first == Candidate((1.2, 0.75), {})
    assert second.changes(settings)["ranker"] == "klsa"


def test_alphas_are_tried_near_the_default():
    assert [c.changes(Settings()).get("alpha") for c in alphas(Settings())] == [
        None,
        *(alpha for alpha in ALPHAS if alpha != 0.7),
    ]
    bm25 = Settings.of_preset("default", ranker="bm25")
    assert [c.changes(bm25).get("alpha", 0.7) for c in alphas(bm25)[1:]] == list(ALPHAS)
