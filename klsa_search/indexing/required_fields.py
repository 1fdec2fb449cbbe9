"""The fields that settings name must be in a document."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from klsa_search.collection.model import Collection
from klsa_search.core.config import Settings
from klsa_search.core.field_weights import TEXT, TITLE
from klsa_search.errors import SettingsError
from klsa_search.indexing.reading import StoredCollection
from klsa_search.storage.columns.type_detection import NO_VALUE
from klsa_search.storage.manifest import FieldsEntry


def require_fields(
    collection: Collection, settings: Settings, fields: FieldsEntry, documents: int
) -> None:
    """Raise SettingsError if no document has a field that is searched, HTML, split or declared.

    Fields of stored documents need only be searched before: their last value may be deleted.
    """
    if not documents:
        return
    metadata = sorted({*fields.columns, *fields.others})
    names = [TITLE, *metadata, TEXT]
    stored = collection if isinstance(collection, StoredCollection) else None
    if not fields.more:
        searched = settings.searched_fields
        present = {*names, *(stored.searched if stored else ())}
        missing = [
            name
            for name in searched.others
            if name not in present and not any(field.startswith(f"{name}.") for field in metadata)
        ]
        _refuse("search", str(searched), missing, names)
    if stored:
        return
    if not fields.more:
        for name in settings.html or ():
            _refuse("html", name, {name}.difference(names), names)
        for name, separator in settings.separators().items():
            _refuse("split", f"{name}={separator}", {name}.difference(metadata), metadata)
    for name in settings.declared():
        column = fields.columns.get(name)
        is_empty = fields.others.get(name) == NO_VALUE or (
            column is not None and not (column.values or column.misfits)
        )
        _refuse("fields", name, [name] if is_empty else [], sorted({*metadata} - {name}))


def _refuse(setting: str, value: str, missing: Iterable[str], names: Sequence[str]) -> None:
    """Raise SettingsError for the first missing field, and name those that documents have."""
    for name in missing:
        present = ", ".join(f"`{each}`" for each in names) or "none"
        raise SettingsError(
            f"{setting} = {value!r}: no document has a field `{name}`; the fields are: {present}",
            field=setting,
        )
