"""Attributes made when they are read: properties, fields, results, methods of a part, exports."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from functools import lru_cache, wraps
from importlib import import_module
from types import MethodType
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Concatenate,
    Generic,
    ParamSpec,
    Self,
    TypeVar,
    cast,
    overload,
)
from weakref import WeakMethod

from klsa_search.core.deadlines import deadline_check

P = ParamSpec("P")
T = TypeVar("T")
Lazy = TypeVar("Lazy", bound="LazyFields")


def cached_method(method: Callable[P, T], size: int) -> Callable[P, T]:
    """Return a bound method with an `lru_cache`, for its object to keep.

    A cache of the method itself refers to the object. With that circle, an object is freed by the
    garbage collector only, and never if it is older than `gc.freeze`.
    """
    weak = WeakMethod(method)

    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        bound = weak()
        assert bound is not None, "its object calls it"
        return bound(*args, **kwargs)

    return cast(Callable[P, T], lru_cache(size)(call))


class lazy_property(Generic[T]):  # noqa: N801 - a decorator
    """`functools.cached_property` with a lock for each value.

    One thread computes the value, and others wait for it. In Python 3.11 all objects of a class
    share one lock, so their values are computed one after another; since 3.12 there is no lock.
    """

    def __init__(self, make: Callable[[Any], T]) -> None:
        self._make = make
        self.__doc__ = make.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        """Set the name of the instance attribute, which then hides this descriptor."""
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> lazy_property[T]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> lazy_property[T] | T:
        """Compute and store the value."""
        if instance is None:
            return self
        values, lock_name = vars(instance), f"{self._name} lock"
        lock = values.setdefault(lock_name, threading.Lock())
        with lock, deadline_check(None):  # the caller's deadline is not that of those who wait
            if self._name not in values:  # computed by another thread meanwhile
                values[self._name] = self._make(instance)
            values.pop(lock_name, None)  # a lock cannot be pickled
            made: T = values[self._name]
        return made


class LazyFields:
    """Sets those fields of a dataclass with slots that have no value when one of them is read."""

    __slots__ = ("_make",)
    _make: Callable[[], object]
    __dataclass_fields__: ClassVar[Mapping[str, object]]

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            """Set all fields that have no value, and return one of them."""
            fields = self.__dataclass_fields__
            if name not in fields:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            made = self._make()
            for field in fields:
                try:
                    object.__getattribute__(self, field)
                except AttributeError:
                    object.__setattr__(self, field, getattr(made, field))
            return object.__getattribute__(self, name)

    def __getstate__(self) -> list[object]:
        """Return the values of all fields, without what makes them."""
        return [getattr(self, name) for name in self.__dataclass_fields__]

    def __setstate__(self, values: list[object]) -> None:
        """Set all fields."""
        for name, value in zip(self.__dataclass_fields__, values, strict=True):
            object.__setattr__(self, name, value)


def when_read(kind: type[Lazy], make: Callable[[], Lazy]) -> Lazy:
    """Return what `make` returns, which is called when a field is first read."""
    instance = object.__new__(kind)
    object.__setattr__(instance, "_make", make)
    return instance


def set_when_read(instance: LazyFields, name: str, make: Callable[[], object]) -> None:
    """Set a field to that of what `make` returns, which is called when the field is first read."""
    object.__setattr__(instance, "_make", make)
    object.__delattr__(instance, name)


Part = TypeVar("Part")


class delegated(Generic[P, T]):  # noqa: N801 - reads as a decorator
    """A method that is called on an attribute of the object, with its signature and docstring.

    part    name of the attribute
    method  of its class, or a function of it

    >>> class Shelf:
    ...     def __init__(self) -> None:
    ...         self._books = ["Emma"]
    ...
    ...     count = delegated("_books", list.count)
    >>> Shelf().count("Emma")
    1
    """

    def __init__(self, part: str, method: Callable[Concatenate[Part, P], T]) -> None:
        self._part, self._method = part, method
        self.__doc__ = method.__doc__

    @lazy_property
    def _function(self) -> Callable[..., T]:
        """The method as a function of the object, which its signature calls self."""
        from inspect import Parameter, signature  # takes longer to import than all else here

        part, method = self._part, cast(Callable[Concatenate[object, P], T], self._method)

        @wraps(method)
        def call(instance: object, *args: P.args, **kwargs: P.kwargs) -> T:
            return method(getattr(instance, part), *args, **kwargs)

        written = signature(method)
        first, *parameters = written.parameters.values()
        first = first.replace(name="self", annotation=Parameter.empty)
        vars(call)["__signature__"] = written.replace(parameters=[first, *parameters])
        return call

    @overload
    def __get__(self, instance: None, owner: type) -> Callable[..., T]: ...

    @overload
    def __get__(self, instance: object, owner: type) -> Callable[P, T]: ...

    def __get__(self, instance: object, owner: type) -> object:
        """Return the method of the part, or a function of the object."""
        if instance is None:
            return self._function
        return MethodType(self._method, getattr(instance, self._part))


class delegated_property(property, Generic[T]):  # noqa: N801 - as `delegated`
    """A property of an attribute of the object, with its type and docstring.

    part  name of the attribute
    of    property of its class: for a type checker, a function of it
    """

    def __init__(self, part: str, of: Callable[[Part], T]) -> None:
        get = cast(property, of).fget
        assert get is not None
        super().__init__(wraps(get)(lambda instance: get(getattr(instance, part))))

    if TYPE_CHECKING:

        @overload
        def __get__(self, instance: None, owner: type, /) -> Self: ...
        @overload
        def __get__(self, instance: object, owner: type | None = None, /) -> T: ...
        def __get__(self, instance: object, owner: type | None = None, /) -> Self | T:
            """Return the value of the part."""


def lazy_exports(
    namespace: dict[str, object], names: Mapping[str, str]
) -> tuple[list[str], Callable[[str], object], Callable[[], list[str]]]:
    """Return `__all__`, `__getattr__` and `__dir__` of a package whose imports wait for their use.

    So commands load only what they need.

    namespace  globals of the package
    names      exported names, separated by blanks, by their module below `klsa_search`
    """
    modules = {name: module for module, exported in names.items() for name in exported.split()}

    def get(name: str) -> object:
        if name not in modules:
            raise AttributeError(f"module {namespace['__name__']!r} has no attribute {name!r}")
        module = import_module(f"klsa_search.{modules[name]}")
        value = namespace[name] = getattr(module, name)
        return value

    return sorted(modules), get, lambda: sorted({*namespace, *modules})
