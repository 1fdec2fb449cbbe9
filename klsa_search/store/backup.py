"""A copy of an index that is in use: an index of one generation, to be opened or copied back."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from klsa_search.errors import IndexDamaged, StoreError
from klsa_search.store.current import current_generation, step_for
from klsa_search.store.generations import check_sizes, new_generation, seal, sync_files
from klsa_search.store.judgements import Judgements
from klsa_search.store.log import WriteLog
from klsa_search.store.manifest import Manifest, read_manifest, sha256_of
from klsa_search.store.marking import is_unfinished
from klsa_search.store.names import CURRENT, JUDGED
from klsa_search.store.synonyms import read_synonyms, replace_synonyms


def copy_index(source: Path, target: Path) -> Manifest:
    """Copy the generation in use, its log, the synonyms and the judgements to a folder that is not
    there.

    The target is an index once all of it is there. What an interrupted copy or build left at the
    target is replaced. The index may be searched and written meanwhile: the copy
    has what was acknowledged when its log is copied, last. Every file is compared with its sum.
    IndexNotFound; IndexDamaged names a file of the source that has changed; StoreError if something
    is at the target, the generation was removed meanwhile, or there is no room. Cost: reading and
    writing all files.
    """
    if os.path.lexists(target) and not is_unfinished(target):
        raise _taken(target)
    generation = current_generation(source)
    manifest = read_manifest(generation)
    check_sizes(generation, manifest)
    with new_generation(target) as fresh:
        if os.path.lexists(target / CURRENT):  # finished by another process just now
            raise _taken(target)
        for name in manifest.files:
            try:
                shutil.copyfile(generation / name, fresh / name)
            except FileNotFoundError as error:
                raise StoreError(
                    f"`{generation}` was removed during the copy; copy the index again"
                ) from error
            found = sha256_of(fresh / name)
            if found != manifest.files[name].sha256:
                raise IndexDamaged(
                    f"`{generation / name}` has changed since it was built; "
                    f"{step_for(generation / name)}"
                )
        WriteLog(generation).copy_to(fresh)
        for name in JUDGED:  # of a copy of another index that was interrupted
            (target / name).unlink(missing_ok=True)
        replace_synonyms(target, read_synonyms(source))
        Judgements(source).copy_to(target)
        sync_files(fresh)
        seal(fresh, manifest)
    return manifest


def _taken(target: Path) -> StoreError:
    return StoreError(f"`{target}` already exists; choose another name, or delete it first")
