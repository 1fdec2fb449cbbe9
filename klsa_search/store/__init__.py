"""Keep: an index on disk, generation by generation."""

from typing import TYPE_CHECKING

from klsa_search.faces import handing_on

if TYPE_CHECKING:
    from klsa_search.store.aliases import aliases_in, followed, remove_alias, set_alias
    from klsa_search.store.checked import check_once, note_checked
    from klsa_search.store.current import current_generation
    from klsa_search.store.documents import DocumentReader, DocumentWriter
    from klsa_search.store.generations import sealed_generations
    from klsa_search.store.judgements import JudgedQuery, Judgements
    from klsa_search.store.manifest import Manifest, read_manifest
    from klsa_search.store.marking import is_index
    from klsa_search.store.names import index_path
    from klsa_search.store.sum_check import SumCheck
    from klsa_search.store.synonyms import read_synonyms, synonyms_of_text, write_synonyms
    from klsa_search.store.upkeep import (
        Rollback,
        delete_index,
        indexes_in,
        rollback,
        undo_writes,
    )
    from klsa_search.store.verifying import verify
else:
    __getattr__, __dir__ = handing_on(
        __name__,
        {
            "aliases": "aliases_in followed remove_alias set_alias",
            "checked": "check_once note_checked",
            "current": "current_generation",
            "documents": "DocumentReader DocumentWriter",
            "generations": "sealed_generations",
            "judgements": "JudgedQuery Judgements",
            "manifest": "Manifest read_manifest",
            "marking": "is_index",
            "names": "index_path",
            "sum_check": "SumCheck",
            "synonyms": "read_synonyms synonyms_of_text write_synonyms",
            "upkeep": "Rollback delete_index indexes_in rollback undo_writes",
            "verifying": "verify",
        },
    )

__all__ = [
    "DocumentReader",
    "DocumentWriter",
    "JudgedQuery",
    "Judgements",
    "Manifest",
    "Rollback",
    "SumCheck",
    "aliases_in",
    "check_once",
    "current_generation",
    "delete_index",
    "followed",
    "index_path",
    "indexes_in",
    "is_index",
    "note_checked",
    "read_manifest",
    "read_synonyms",
    "remove_alias",
    "rollback",
    "sealed_generations",
    "set_alias",
    "synonyms_of_text",
    "undo_writes",
    "verify",
    "write_synonyms",
]
