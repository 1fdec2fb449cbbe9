"""AppendableMemmap: rows equal those of np.concatenate, and views do not change."""

from __future__ import annotations

import gc
import mmap
import os
import re
import resource
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from klsa_search.errors import IndexDamaged, StoreError
from klsa_search.storage.appendable_memmap import AppendableMemmap
from klsa_search.storage.arrays import write_arrays
from tests.support.forked import in_child

PAGE = mmap.PAGESIZE
KINDS = ["<f4", "<i8", "<u4", "|i1", "|u1"]


def numbers(rows, row, kind, first=0):
    count = rows * int(np.prod(row, dtype=int))
    return (np.arange(first, first + count) % 101).reshape(rows, *row).astype(kind)


def opened(folder, array, name="kept"):
    (folder / f"{name}.npy").unlink(missing_ok=True)
    write_arrays(folder, {name: array})
    return AppendableMemmap.open(folder, name)


@given(
    kind=st.sampled_from(KINDS),
    row=st.sampled_from([(), (1,), (3,), (48,), (0,)]),
    base=st.sampled_from([0, 1, 7, PAGE // 8, PAGE - 128, PAGE, 3 * PAGE + 5]),
    steps=st.lists(st.sampled_from([0, 1, 2, 63, 5_000, 200_000]), max_size=5),
)
def test_a_region_is_the_concatenation_and_views_stay(tmp_path_factory, kind, row, base, steps):
    pieces = [numbers(base, row, kind)]
    folder = tmp_path_factory.mktemp("region")
    region = opened(folder, pieces[0])
    seen = [(region.view(base), pieces[0])]
    for step in steps:
        rows = max(0, step // max(1, int(np.prod(row))))
        pieces.append(numbers(rows, row, kind, first=len(region) + 3))
        region.append(pieces[-1])
        wanted = np.concatenate(pieces)
        seen.append((region.view(len(wanted)), wanted))
    assert len(region) == len(seen[-1][1])
    for view, wanted in seen:
        assert view.dtype == wanted.dtype
        assert view.shape == wanted.shape
        assert view.flags.c_contiguous
        assert np.array_equal(view, wanted)


def test_the_base_may_be_unlinked_and_the_region_may_go_before_its_views(tmp_path):
    base = numbers(10_000, (4,), "<f4")
    region = opened(tmp_path, base)
    (tmp_path / "kept.npy").unlink()
    views = []
    for _ in range(6):
        region.append(base)
        views.append(region.view(len(region)))
    del region
    gc.collect()
    for number, view in enumerate(views):
        assert np.array_equal(view, np.concatenate([base] * (number + 2)))


def test_views_are_read_only_and_no_longer_than_the_region(tmp_path):
    region = opened(tmp_path, numbers(5, (2,), "<i8"))
    with pytest.raises(ValueError, match="read-only"):
        region.view(5)[0, 0] = 1
    for n in (-1, 6):
        with pytest.raises(ValueError, match=f"{n} rows of 5"):
            region.view(n)


@pytest.mark.parametrize("rows", [np.ones((2, 3), "<i4"), np.ones(2, "<i4"), np.ones((2, 2))])
def test_rows_of_another_kind_are_refused_and_change_nothing(tmp_path, rows):
    region = opened(tmp_path, numbers(5, (2,), "<i4"))
    with pytest.raises((ValueError, TypeError)):
        region.append(rows)
    assert np.array_equal(region.view(len(region)), numbers(5, (2,), "<i4"))


def test_a_forked_child_goes_its_own_way(tmp_path):
    base = numbers(2_000, (4,), "<i4")
    region = opened(tmp_path, base)
    region.append(base)

    def work():
        for _ in range(100):
            region.append(base + 1)
        assert np.array_equal(region.view(4_000), np.concatenate([base, base]))
        assert np.array_equal(region.view(6_000)[4_000:], base + 1)

    assert in_child(work) == 0
    region.append(base + 2)
    assert np.array_equal(region.view(6_000), np.concatenate([base, base, base + 2]))


@pytest.mark.slow
def test_descriptors_and_addresses_go_with_the_last_view(tmp_path):
    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("needs /proc")

    def taken():
        gc.collect()
        with open("/proc/self/maps") as maps:
            mapped = sum("kept.npy" in line for line in maps)
        return len(os.listdir("/proc/self/fd")), mapped

    base = numbers(5_000, (4,), "<i4")
    write_arrays(tmp_path, {"kept": base})
    before = taken()
    region = AppendableMemmap.open(tmp_path, "kept")
    region.append(base)
    view = region.view(10_000)
    assert taken() == (before[0] + 1, before[1] + 1)
    del region
    assert taken() == (before[0], before[1] + 1)
    assert np.array_equal(view, np.concatenate([base, base]))
    del view
    assert taken() == before


@pytest.mark.slow
def test_the_base_stays_in_the_page_cache_and_the_rest_takes_what_it_holds(tmp_path):
    if not sys.platform.startswith("linux"):
        pytest.skip("needs /proc")
    base = numbers(2**20, (16,), "<i4")  # 64 MiB
    region = opened(tmp_path, base)
    region.append(base[:10])
    assert region.view(len(region)).sum(dtype=np.int64) > 0
    with open("/proc/self/smaps") as maps:
        said = maps.read().partition("kept.npy")[2]
    copied = re.search(r"Anonymous: +(\d+) kB", said)
    assert copied
    assert copied[1] == "0"


@pytest.mark.parametrize("length", [0, 5, 9, 40, 130])
def test_a_file_cut_short_is_named(length, tmp_path):
    write_arrays(tmp_path, {"kept": np.ones((3, 4), np.float32)})
    path = tmp_path / "kept.npy"
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(IndexDamaged, match=r"cannot read `.*kept\.npy`"):
        AppendableMemmap.open(tmp_path, "kept")


def test_a_lack_of_address_space_is_an_error_and_changes_nothing(tmp_path):
    if not sys.platform.startswith("linux"):
        pytest.skip("needs Linux, which keeps to the limit of addresses")
    region = opened(tmp_path, numbers(2**20, (16,), "<i4"))

    def work():
        resource.setrlimit(resource.RLIMIT_AS, (2**20, resource.RLIM_INFINITY))
        with pytest.raises(StoreError, match=r"[\d,]+ bytes of address space .*ulimit -v"):
            region.append(np.broadcast_to(np.int32(1), (2**20 + 1, 16)))
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        assert len(region) == 2**20
        region.append(numbers(2**20 + 1, (16,), "<i4"))
        assert len(region) == 2**21 + 1

    assert in_child(work) == 0
