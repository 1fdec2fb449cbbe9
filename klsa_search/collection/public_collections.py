"""The public test collections (cran, cisi, cacm, med): their files, checksums and locations."""

from __future__ import annotations

import hashlib
import os
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from klsa_search.collection.smart import SmartRules
from klsa_search.core.cache_folder import cache_folder
from klsa_search.errors import CollectionError


def collection_directories() -> list[Path]:
    """Return the folders that are searched for collections, in order.

    `$KLSA_COLLECTIONS`, and the user's cache, to which `klsa-eval fetch` downloads.
    """
    named, cached = os.environ.get("KLSA_COLLECTIONS"), cache_directory()
    return [*([Path(named)] if named else []), *([cached] if cached is not None else [])]


def cache_directory() -> Path | None:
    """Return the default folder of `klsa-eval fetch`; None for a user without a home."""
    folder = cache_folder()
    return None if folder is None else folder / "collections"


PYTHON_DOCS = "python-docs"
COLLECTIONS = ("cacm", "cisi", "cran", "cran-1837", "med", PYTHON_DOCS)
"""Names that can be given instead of a path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicCollection:
    """The archive of a collection and the checksums of its files."""

    archive: str  # below the base URL
    sums: Mapping[str, str]  # file name -> `text_sum`
    aliases: Mapping[str, str] = field(default_factory=dict)  # name in the archive -> file name


PUBLIC = {
    "cacm": PublicCollection(
        archive="cacm/cacm.tar.gz",
        sums={
            "cacm.all": "8ad927ea376eed3b519f6449ab0b1d9083e9eb2a62e74e9e571f3ae3c8984025",
            "qrels.text": "da4202b0c70cad7d91c9a028eaf8cbd0a4ca981ebdc3955eb75ba7b6de6f185c",
            "query.text": "af9bf4353c0e1aa8e9c8171133b8f921006f03416099b7cdaf6b0886a8de9d84",
        },
    ),
    "cisi": PublicCollection(
        archive="cisi/cisi.tar.gz",
        sums={
            "CISI.ALL": "6198324e48a6354b7c01cb829a48f615cc185d2f5016a8f6929148b062b2d7ad",
            "CISI.QRY": "b72de0e0cb8aa5c93ac988e5be0400cc18949d0a94913a248783a37dd97d5470",
            "CISI.REL": "f7396c92586c61953ccb7ae99ad8d3ac749ac3b989041fc93a9e311568f58997",
        },
    ),
    "cran": PublicCollection(
        archive="cran/cran.tar.gz",
        sums={
            "cran.all.1400": "b234544b6ceccd131520df4a3cb6d42aee6576eb577933d047e722bbfe7b0b09",
            "cran.qrels": "3b9fcdcfc6e21246a7e82f7e29b99807fd96788531cb5987799493b2a9facbad",
            "cran.qry": "dd9b1419f678874daf66d5239ca372193722d74f5ea749f3b0f46a6b37cd9274",
        },
        aliases={"cranqrel": "cran.qrels"},
    ),
    "med": PublicCollection(
        archive="medl/med.tar.gz",
        sums={
            "MED.ALL": "999926d59e0f86ba1b4884d6ce846b358ad0afc884ee1f12402d3d096882e446",
            "MED.QRY": "880747578d46b051e239fa2b71b32eafbac3d673bd4c746e5e67e18eb6ca8587",
            "MED.REL": "aef5ac922c08d5711ffd525985e03cda4272694e35f646deab90177f329ff575",
        },
    ),
}

_CRAN = SmartRules(words_last=True, title_repeated=True, queries_by_order=True, best_grade=5)
_CRAN_1837 = SmartRules(
    words_last=True, title_repeated=True, queries_by_order=True, all_relevant=True
)


def smart_rules(documents: Path, name: str | None = None) -> SmartRules:
    """Return the rules for a SMART file, by its name and the name of the collection."""
    if not documents.name.lower().startswith("cran"):
        return SmartRules()
    return _CRAN_1837 if name == "cran-1837" else _CRAN


def folder_name(name: str) -> str:
    """Return the folder name of a collection; cran-1837 is another view of cran."""
    return "cran" if name == "cran-1837" else name


def find(name: str, data: Iterable[Path]) -> Path:
    """Return the folder of a named collection: the first below `data` with that name, in any case.

    CollectionError names the folders searched and the command that downloads the collection.
    """
    wanted = folder_name(name)
    searched = list(data)
    for directory in searched:
        if directory.is_dir():
            for folder in sorted(directory.iterdir()):
                if folder.name.lower() == wanted and folder.is_dir():
                    return folder
    if not searched:
        raise CollectionError(
            f"no folder to look for the collection `{name}`; name one with data=FOLDER (--data, "
            f"KLSA_COLLECTIONS); `klsa-eval fetch {wanted} --data FOLDER` downloads it there"
        )
    raise CollectionError(
        f"no collection `{name}` in {' or '.join(map(str, searched))}; download it "
        f"with `klsa-eval fetch {wanted} --data {shlex.quote(str(searched[-1]))}`, "
        "or name its folder (--data, in Python data=)"
    )


def text_sum(path: Path) -> str:
    """Return the sha256 of a text file without line endings, trailing blanks and final blank lines.

    Versions of the archives differ in line endings.
    """
    digest = hashlib.sha256()
    blank = 0
    with path.open("rb") as stream:
        for line in stream:
            content = line.rstrip()
            if content:
                digest.update(b"\n" * blank + content + b"\n")
                blank = 0
            else:
                blank += 1
    return digest.hexdigest()
