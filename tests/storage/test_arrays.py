"""Arrays are read as written; files that are not arrays are named."""

import ast
import errno
import gc
import os
import threading

import numpy as np
import pytest

from klsa_search.errors import IndexDamaged
from klsa_search.storage.arrays import (
    VOCABULARY,
    ArrayWriter,
    open_array,
    read_vocabulary,
    write_arrays,
)
from tests.support.waiting import PATIENCE


@pytest.mark.parametrize("kind", ["<f4", "<f8", "<i4", "<i8", "<u4", "|i1", "|u1", "|b1"])
def test_written_arrays_are_read_by_numpy_and_opened(kind, tmp_path):
    arrays = {
        "-".join(map(str, shape)): (np.arange(np.prod(shape)) % 2).reshape(shape).astype(kind)
        for shape in ((0,), (1,), (7,), (3, 4), (0, 5), (2, 3, 4))
    }
    write_arrays(tmp_path, arrays)
    for name, array in arrays.items():
        for found in (open_array(tmp_path, name), np.load(tmp_path / f"{name}.npy")):
            assert (found.dtype, found.shape) == (array.dtype, array.shape)
            assert np.array_equal(found, array)
        assert not open_array(tmp_path, name).flags.writeable


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"\x93NUMPY\x01", b"\x93NUMPY\x02"),
        (b"NUMPY", b"DUMPY"),
        (b"'<f4'", b"'<f9'"),
        (b"'<f4'", b"'|O' "),
        (b"False", b"True "),
        (b"(3, 4)", b"(9, 9)"),
        (b"(3, 4)", b"(3 4) "),
        (b"(3, 4), }  ", b"(9" + b"9" * 9),
        (b"{", b"\xff"),
    ],
)
def test_a_file_that_is_not_an_array_is_named(old, new, tmp_path):
    write_arrays(tmp_path, {"kept": np.ones((3, 4), np.float32)})
    path = tmp_path / "kept.npy"
    held = path.read_bytes()
    assert old in held
    path.write_bytes(held.replace(old, new, 1))
    with pytest.raises(
        IndexDamaged, match=r"cannot read `.*kept\.npy` .*klsa-index repair"
    ) as told:
        open_array(tmp_path, "kept")
    assert "\n" not in told.value.message


def test_terms_that_are_not_text_are_named(tmp_path):
    (tmp_path / VOCABULARY).write_bytes(b"\xff" * 20)
    with pytest.raises(
        IndexDamaged, match=r"cannot read .*vocabulary\.txt` .*; run `klsa-index repair"
    ):
        read_vocabulary(tmp_path)


@pytest.mark.parametrize("length", [0, 5, 9, 40, 130])
def test_a_file_cut_short_is_named(length, tmp_path):
    write_arrays(tmp_path, {"kept": np.ones((3, 4), np.float32)})
    path = tmp_path / "kept.npy"
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(IndexDamaged, match=r"cannot read `.*kept\.npy`"):
        open_array(tmp_path, "kept")


@pytest.mark.parametrize(
    ("call", "number"), [("pathlib.Path.open", errno.EMFILE), ("numpy.memmap", errno.ENOMEM)]
)
def test_lacking_memory_or_descriptors_are_not_damage(tmp_path, monkeypatch, call, number):
    write_arrays(tmp_path, {"kept": np.ones(2**15, np.float32)})

    def exhausted(*_, **__):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(call, exhausted)
    with pytest.raises(OSError, match=os.strerror(number)):
        open_array(tmp_path, "kept")


@pytest.mark.parametrize(("rows", "descriptors"), [(100, 0), (2**15, 1)])
def test_only_large_arrays_keep_a_file_open(tmp_path, rows, descriptors):
    expected = np.arange(rows, dtype=np.float32)
    write_arrays(tmp_path, {"kept": expected})
    before = len(os.listdir("/proc/self/fd"))
    array = open_array(tmp_path, "kept")
    assert len(os.listdir("/proc/self/fd")) - before == descriptors
    assert np.array_equal(array, expected)
    assert not array.flags.writeable


def test_an_array_can_be_opened_while_another_thread_parses(tmp_path):
    """Python 3.11 fails when a second thread parses from deeper down while one has not finished.

    Threads change where memory is swept, so at each sweep in turn another thread parses.
    """
    write_arrays(tmp_path, {"kept": np.ones((3, 4), np.float32)})
    sweeps, chosen = 0, 0

    def deeper(calls):
        return ast.parse("x = (1 + (2 + 3))") if calls == 0 else deeper(calls - 1)

    def parse(phase, _):
        nonlocal sweeps
        if phase == "start":
            sweeps += 1
            if sweeps == chosen:
                other = threading.Thread(target=deeper, args=(100,))
                other.start()
                other.join(PATIENCE)

    before = gc.get_threshold()
    gc.callbacks.append(parse)
    try:
        gc.set_threshold(1)
        for chosen in range(1, 40):  # noqa: B007 - `parse` reads it
            sweeps = 0
            assert open_array(tmp_path, "kept").shape == (3, 4)
    finally:
        gc.set_threshold(*before)
        gc.callbacks.remove(parse)


def test_an_array_of_two_dimensions_is_written_some_rows_at_a_time(tmp_path):
    rows = np.arange(12, dtype=np.uint16).reshape(4, 3)
    with ArrayWriter(tmp_path, "pieces", rows.dtype, columns=3) as writer:
        for first, last in [(0, 1), (1, 1), (1, 4)]:
            writer.append(rows[first:last])
    write_arrays(tmp_path, {"whole": rows})
    assert (tmp_path / "pieces.npy").read_bytes() == (tmp_path / "whole.npy").read_bytes()
