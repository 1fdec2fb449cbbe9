"""User tokenizers: functions that find the words of a text, named `module:function`, and plug-ins.

An index stores the name. Importing `module:function` runs code, and an index may come from an
untrusted source, so a process imports only functions that the user trusts. A plug-in, named without
a colon, was installed to be used, and needs no trust.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from klsa_search.collection.model import text_fault
from klsa_search.core.build_settings import AnalysisSettings, Tokenizer
from klsa_search.core.plugins import imported, load_plugin
from klsa_search.errors import SettingsError

TRUSTED: Final[set[str]] = set()


def trust(tokenizer: Tokenizer | str) -> str:
    """Allow this process to import a tokenizer, a function or `module:function`; return its name.

    Plug-ins need no permission. SettingsError for an invalid name, and for a function that other
    processes cannot import: a lambda, a nested function, or one of a script or prompt.
    """
    name = tokenizer if isinstance(tokenizer, str) else _name_of(tokenizer)
    AnalysisSettings.checked({"tokenizer": name})
    TRUSTED.add(name)
    return name


def with_trusted_tokenizer(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings given by the user, with the tokenizer trusted and replaced by its name."""
    tokenizer = settings.get("tokenizer")
    return {**settings, "tokenizer": trust(tokenizer)} if tokenizer is not None else dict(settings)


class ImportedTokenizer:
    """Imports a tokenizer by name and checks its results.

    SettingsError if this process does not trust it, if it cannot be imported, or if it returns
    anything but words of the text.
    """

    __slots__ = ("_find", "_name")

    def __init__(self, name: str) -> None:
        if ":" in name and name not in TRUSTED:
            raise SettingsError(
                f"the index uses the tokenizer `{name}`, which is code that will "
                "be imported and run; if you trust it, open the index with "
                f"tokenizer={name!r} in Python, or set KLSA_TOKENIZERS={name} for "
                "commands and the service",
                field="tokenizer",
            )
        self._name, self._find = name, function_of(name)

    def words(self, text: str) -> Iterator[tuple[str, int, int]]:
        """Yield the words of a text in order with start and end, without white space."""
        try:
            words = list(self._find(text))
        except Exception as error:  # user code may raise anything
            raise SettingsError(
                f"tokenizer `{self._name}` failed ({type(error).__name__}: {error}); correct it",
                field="tokenizer",
            ) from error
        before = 0
        for item in words:
            match item:
                case (str() as word, int() as start, int() as end):
                    if before <= start < end <= len(text) and not text_fault(word):
                        before = start
                        # A term is one line of the vocabulary.
                        if word := " ".join(word.split()):
                            yield word, start, end
                        continue
            raise SettingsError(
                f"tokenizer `{self._name}` returned {item!r}; it must return "
                "(word, start, end), within the text and in order",
                field="tokenizer",
            )


def function_of(name: str) -> Tokenizer:
    """Import a tokenizer by name, trusted or not; SettingsError, PluginFailed."""
    function = imported("tokenizer", name) if ":" in name else load_plugin("tokenizer", name)
    if not callable(function):
        raise SettingsError(
            f"tokenizer `{name}` is not a function; name a function", field="tokenizer"
        )
    return function  # type: ignore[no-any-return]  # its results are checked at each call


def _name_of(tokenizer: Tokenizer) -> str:
    module = getattr(tokenizer, "__module__", None)
    path = getattr(tokenizer, "__qualname__", None)
    if module and path and module not in ("__main__", "__mp_main__") and "<" not in path:
        name = f"{module}:{path}"
        if function_of(name) is tokenizer:
            return name
    raise SettingsError(
        f"tokenizer {tokenizer!r} cannot be imported when the index is opened "
        "again; define it with def, at the top level of an importable module",
        field="tokenizer",
    )
