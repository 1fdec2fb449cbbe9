"""What a digest of compiled code covers."""

from __future__ import annotations

import ast
import importlib
import pkgutil
from pathlib import Path

import numpy as np
import pytest
from numba import types

import klsa_search
from klsa_search.compiled import compiled
from klsa_search.compiled.decorators import Compiled
from klsa_search.compiled.ingredients import Unknown, digest_of, digest_of_call
from tests.support.sources import nodes


def every_function():
    found = {}
    for each in pkgutil.walk_packages(klsa_search.__path__, "klsa_search."):
        if each.name.startswith("klsa_search.connect."):  # needs what is not always there
            continue
        for value in vars(importlib.import_module(each.name)).values():
            if isinstance(value, Compiled):
                found[value.py_func] = value
    return found.values()


def test_every_compiled_function_of_the_package_can_be_kept():
    digests = [digest_of(function) for function in every_function()]
    assert len(set(digests)) == len(digests) > 50


def test_nothing_is_compiled_in_by_a_way_that_is_not_followed():
    """Such as `overload`, which makes code for a function that says nothing of it."""
    imported = {
        alias.name
        for _, node in nodes("klsa_search", ast.ImportFrom)
        if node.module == "numba.extending"
        for alias in node.names
    }
    assert imported == {"intrinsic"}


def test_functions_that_call_each_other_have_a_digest():
    def pair(limit):
        @compiled
        def even(number):
            return number <= limit or odd(number - 1)

        @compiled
        def odd(number):
            return number > limit and even(number - 1)

        return even

    assert digest_of(pair(0)) == digest_of(pair(0)) != digest_of(pair(1))


VALUES = object(), {1, 2}, Path(), klsa_search.Index, types.voidptr


@pytest.mark.parametrize("value", VALUES, ids="abcde")
def test_what_cannot_be_told_apart_is_not_kept(value):
    @compiled
    def using(number):
        return value

    with pytest.raises(Unknown):
        digest_of(using)


def test_arrays_are_told_apart_by_their_numbers_and_their_type():
    def using(array):
        @compiled
        def first(place):
            return array[place]

        return digest_of(first)

    arrays = [np.arange(3), np.arange(3) + 1, np.arange(3.0), np.arange(3)[:, None]]
    assert len({using(array) for array in arrays}) == 4
    assert using(np.arange(3)) == using(np.arange(3))


def test_code_for_other_types_or_machines_is_other_code():
    signatures = [
        (types.int64,),
        (types.int32,),
        (types.int64, types.int64),
        (types.UniTuple(types.int64, 2),),
        (types.float32[::1],),
        (types.Array(types.float32, 1, "C", readonly=True),),
        (types.Omitted(64),),
        (types.Omitted(512),),
    ]
    digests = {digest_of_call(each, machine) for each in signatures for machine in ("a", "b")}
    assert len(digests) == 2 * len(signatures)
