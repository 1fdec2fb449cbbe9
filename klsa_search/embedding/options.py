"""Options that give a value to each space of vectors: SPACE=VALUE."""

from __future__ import annotations

from collections.abc import Iterable

from klsa_search.errors import SettingsError


def embedders_of(options: Iterable[str]) -> dict[str, str]:
    """Return the models of options SPACE=MODEL by space; SettingsError."""
    return by_space("embedder", options, "minilm=onnx:FOLDER")


def by_space(option: str, options: Iterable[str], example: str) -> dict[str, str]:
    """Return the values of options SPACE=VALUE by space; SettingsError."""
    values = {}
    for text in options:
        space, sign, value = text.partition("=")
        if not space or not sign:
            raise SettingsError(
                f"{option} = {text!r} names no space; give SPACE=VALUE, as in {example}",
                field=option,
            )
        if space in values:
            raise SettingsError(
                f"{option} = {text!r}: space `{space}` is given twice; give it once", field=option
            )
        values[space] = value
    return values
