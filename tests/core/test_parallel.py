"""map_in_order keeps the order and limits the work in progress."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from klsa_search.core.parallel import map_in_order, processors


def test_there_is_at_least_one():
    assert processors() >= 1


@pytest.mark.parametrize("ahead", [0, 1, 5, 100])
def test_results_come_in_the_order_of_the_items(ahead):
    with ThreadPoolExecutor(3) as pool:
        found = map_in_order(lambda item: pool.submit(pow, item, 2), range(20), ahead=ahead)
        assert list(found) == [item**2 for item in range(20)]


def test_items_are_taken_when_there_is_room():
    taken = []

    def items():
        for item in range(10):
            taken.append(item)
            yield item

    with ThreadPoolExecutor(1) as pool:
        found = map_in_order(lambda item: pool.submit(abs, item), items(), ahead=2)
        assert next(found) == 0
        assert taken == [0, 1, 2]


def test_a_failure_is_raised_at_its_place():
    with ThreadPoolExecutor(2) as pool:
        found = map_in_order(lambda item: pool.submit(divmod, 6, item), [3, 2, 0, 1], ahead=3)
        assert [next(found), next(found)] == [(2, 0), (3, 0)]
        with pytest.raises(ZeroDivisionError):
            next(found)
