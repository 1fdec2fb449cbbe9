"""What changes without a build: query settings, synonyms, rules and judgements of an index."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Unpack

from klsa_search.core.config import QUERY_SETTINGS, IndexSettings, Settings
from klsa_search.errors import SettingsError
from klsa_search.search.parts.reader import Reader
from klsa_search.search.query.rules import RulesLike, checked_rules
from klsa_search.search.rankers import ranker_of
from klsa_search.storage.current import current_build
from klsa_search.storage.generations import writing
from klsa_search.storage.judgements import Judgements
from klsa_search.storage.manifest import current_settings, read_manifest, replace_settings
from klsa_search.storage.rules import Rule, change_rule, write_rules
from klsa_search.storage.synonyms import (
    SynonymsLike,
    add_synonyms,
    checked_synonyms,
    write_synonyms,
)

P = ParamSpec("P")


def needing_refit(built: Settings, chosen: Settings) -> list[str]:
    """Return the names of the chosen settings that need another build."""
    names = [
        name
        for name in type(built).model_fields
        if name not in QUERY_SETTINGS and getattr(chosen, name) != getattr(built, name)
    ]
    sources = {ranker_of(settings.ranker).scores_by for settings in (built, chosen)}
    if "lsi" in sources and len(sources) > 1:
        names.append("ranker")  # a build stores what it reads
    return names


def refuse_refit(built: Settings, chosen: Settings) -> None:
    """Raise SettingsError if a setting needs another build."""
    if names := needing_refit(built, chosen):
        value, option = getattr(chosen, names[0]), names[0].replace("_", "-")
        change = f"--no-{option}" if value is False else f"--{option}"
        if not isinstance(value, bool):
            change += " VALUE" if isinstance(value, tuple) else f" {shlex.quote(str(value))}"
        raise SettingsError(
            f"{names[0]} = {value!r} needs another build; change it with `klsa-index refit NAME "
            f"{change}`, or `refit` of klsa_search.indexing",
            field=names[0],
        )


def change_settings(path: Path, changes: Mapping[str, Any] | None) -> Settings:
    """Change query settings of the index at a path, and return its settings.

    changes  by name; None returns to the settings of the build
    Raise SettingsError for an invalid setting, or one that needs a refit; IndexNotFound,
    IndexDamaged, IndexBusy, StoreError.
    """
    current_build(path)
    with writing(path):
        generation = current_build(path)
        manifest = read_manifest(generation)
        chosen = built = manifest.checked_settings()
        if changes is not None:
            present = current_settings(generation, manifest).model_dump()
            chosen = Settings.checked(present | {**changes})
            refuse_refit(built, chosen)
        replace_settings(generation, built, chosen)
    return chosen


class Configuration:
    """Methods of `Index` that change what queries use: settings, synonyms, rules, judgements.

    What a method changed is durable and in use when it returns.
    """

    _reader: Reader

    def update_settings(self, **changes: Unpack[IndexSettings]) -> None:
        """Change settings that only queries use: the defaults of searches, and `page_title`.

        They take effect on return, without a rebuild, and survive later ones. SettingsError for an
        invalid setting, and for one that needs `refit`: another expansion matrix D (`spectral`,
        `gamma`, `head`), or a ranker of LSI. IndexBusy, StoreError.

        >>> index.update_settings(alpha=0.5, page_title="Reports")
        >>> index.settings.alpha, index.search("coolant").parameters["alpha"]
        (0.5, 0.5)
        """
        self._change(change_settings, changes)

    def set_synonyms(self, synonyms: SynonymsLike) -> None:
        """Replace the synonyms of the index.

        synonyms  synonyms by word, or rules: `tv, television` for words that stand for each other,
                  `phone => iphone, galaxy` for what *phone* finds too; at most 10,000 words with
                  100 synonyms each. `{}` removes all
        Words may be sequences of words. Synonyms apply to all generations; `synonyms=False` turns
        them off for a query. See docs/guides/query-syntax.md. SettingsError for invalid synonyms;
        IndexBusy, StoreError.

        >>> index.set_synonyms(["automobile, engine", "chilled => coolant"])
        >>> index.synonyms["chilled"]
        ('coolant',)
        >>> [hit.id for hit in index.search("chilled").hits]
        ['leak', 'heat', 'pump']
        >>> index.set_synonyms({})
        """
        self._change(write_synonyms, checked_synonyms(synonyms))

    def add_synonyms(self, synonyms: SynonymsLike) -> None:
        """Add synonyms to those of the index, in either form: see `set_synonyms`.

        Concurrent additions do not lose each other's words.

        >>> index.set_synonyms({"chilled": ["coolant"]})
        >>> index.add_synonyms({"chilled": ["cold"]})
        >>> index.synonyms["chilled"]
        ('coolant', 'cold')
        """
        self._change(add_synonyms, checked_synonyms(synonyms))

    @property
    def rules(self) -> list[dict[str, Any]]:
        """Return the rules of searches, in order: see `set_rules`."""
        return [rule.as_json() for rule in self._reader.rules]

    def set_rules(self, rules: RulesLike) -> None:
        """Replace the rules of the index, which pin, hide and boost documents.

        rules  mappings: an `id`; `when`, the conditions under which the rule applies, `query_is`,
               `query_contains`, `filter`, `from` and `until`; and `then`, what it changes, `pin`,
               `hide` and `boost`; at most 1,000. `[]` removes all
        Rules apply to `search` in all generations, the first rules first; `rules=False` turns them
        off. `rank` and evaluation ignore them. See docs/guides/rules.md. SettingsError names an
        invalid rule; IndexBusy, StoreError.

        >>> pin = {"pin": [{"id": "grip", "position": 1}]}
        >>> index.set_rules([{"id": "grip-first", "when": {"query_is": "coolants"}, "then": pin}])
        >>> results = index.search("coolant", k=2)
        >>> [hit.id for hit in results], results.rules
        (['grip', 'leak'], ('grip-first',))
        >>> index.set_rules([])
        """
        self._change(write_rules, checked_rules(rules))

    def put_rule(self, rule: Mapping[str, Any] | Rule) -> None:
        """Replace the rule of the same ID in its place, or add it as the last: see `set_rules`.

        >>> index.put_rule({"id": "no-copies", "then": {"hide": ["copy"]}})
        >>> [rule["id"] for rule in index.rules]
        ['no-copies']
        """
        (checked,) = checked_rules([rule])
        self._change(change_rule, checked.id, checked)

    def delete_rule(self, id: str) -> None:  # noqa: A002 - the field's own name
        """Delete a rule; RuleNotFound.

        >>> index.set_rules([{"id": "no-copies", "then": {"hide": ["copy"]}}])
        >>> index.delete_rule("no-copies")
        >>> index.rules
        []
        """
        self._change(change_rule, id, None)

    @property
    def judgements(self) -> Judgements:
        """Return the relevance judgements of the index, which all generations share."""
        return Judgements(self._reader.path.parent)

    def judge(self, query: str, id: str, grade: int) -> None:  # noqa: A002 - the field's own name
        """Judge how relevant a document is to a query; above 0 is relevant.

        Replaces an earlier grade. Durable on return, and kept if the document is deleted. Does not
        change rankings: `klsa-eval judgements` measures them. DocumentNotFound, QueryError. Cost:
        some ms.

        >>> index.judge("leaking coolant", "leak", 1)
        >>> index.judge("leaking coolant", "tyre", 0)
        >>> [(judged.text, judged.grades) for judged in index.judgements.queries()]
        [('leaking coolant', {'leak': 1, 'tyre': 0})]
        """
        self._reader.doc_ids([id])
        self.judgements.put(query, id, grade)

    def _change(
        self,
        change: Callable[Concatenate[Path, P], object],
        *arguments: P.args,
        **keywords: P.kwargs,
    ) -> None:
        """Change what is stored in the folder of the index, and search with it."""
        self._reader.require_writer()
        change(self._reader.path.parent, *arguments, **keywords)
        self._reader.refresh()
