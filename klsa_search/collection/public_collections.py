"""Collections with a name: the public test collections, and the docstrings of Python.

Of cran, cisi, cacm and med: where they are, their downloads with checksums, and safe unpacking.
"""

from __future__ import annotations

import ast
import hashlib
import os
import shlex
import tempfile
import warnings
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path, PurePosixPath

from klsa_search.collection.folder import Selection, walk
from klsa_search.collection.model import Document
from klsa_search.core.installation import cache_folder
from klsa_search.core.progress import Progress
from klsa_search.errors import CollectionError, FetchError


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
    lines = map(bytes.rstrip, path.read_bytes().split(b"\n"))
    return hashlib.sha256(b"\n".join(lines).rstrip(b"\n") + b"\n").hexdigest()


BASE_URL = "https://ir.dcs.gla.ac.uk/resources/test_collections"
TIMEOUT = 30  # seconds without data
LARGEST = 64 * 2**20  # bytes of an archive and of each file in it; the real ones are below 3 MB


def fetch(
    names: Iterable[str],
    data: str | os.PathLike[str],
    *,
    base_url: str = BASE_URL,
    progress: Progress | None = None,
) -> list[Path]:
    """Download collections into `data/<name>` and return these folders in order.

    names     names of collections: cran, cisi, cacm, med (cran-1837 is cran)
    data      folder of collections, as in `open_collection`
    base_url  URL of the folder with `cran/cran.tar.gz` and the others
    progress  called with (name, bytes, bytes) after each download

    A complete folder is not downloaded again. Only files with the right checksum replace others, so
    a failure changes nothing. FetchError names the URL and the manual steps.

    >>> fetch(["trec-8"], "data")
    Traceback (most recent call last):
    klsa_search.errors.FetchError: unknown collection 'trec-8'; the collections are: ..., med
    """
    folder = Path(data)
    wanted = list(dict.fromkeys(map(folder_name, names)))
    for name in wanted:
        if name not in PUBLIC:
            raise FetchError(
                f"unknown collection {name!r}; the collections are: {', '.join(PUBLIC)}",
                field="names",
            )
    for name in wanted:
        if _wrong(PUBLIC[name], folder / name) is not None:
            _install(
                name, folder / name, f"{base_url.rstrip('/')}/{PUBLIC[name].archive}", progress
            )
    return [folder / name for name in wanted]


def _install(name: str, target: Path, url: str, progress: Progress | None) -> None:
    public = PUBLIC[name]
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        archive = _downloaded(url, target)
        if progress:
            progress(name, len(archive), len(archive))
        with tempfile.TemporaryDirectory(prefix=f".fetch-{name}-", dir=target.parent) as temporary:
            unpacked = Path(temporary, name)
            unpacked.mkdir()
            _unpack(archive, unpacked, public, url)
            wrong = _wrong(public, unpacked)
            if wrong is not None:
                raise FetchError(
                    f"{url} is not the expected archive ({wrong}), and nothing was "
                    f"kept; put the right files into `{target}` yourself"
                )
            target.mkdir(exist_ok=True)
            for file in sorted(public.sums):
                os.replace(unpacked / file, target / file)
    except OSError as error:
        raise FetchError(
            f"cannot write `{target}` ({error.strerror or error}); free space, or choose another "
            "folder"
        ) from None


def _downloaded(url: str, target: Path) -> bytes:
    """Return the content of a URL; FetchError."""
    import http.client
    import urllib.request

    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT) as answer:  # noqa: S310 - sums are checked
            content: bytes = answer.read(LARGEST + 1)
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        raise FetchError(
            f"cannot download {url} ({reason}); check the network and try again, "
            f"or download it yourself and unpack it into `{target}`"
        ) from None
    if len(content) > LARGEST:
        raise FetchError(f"{url} is larger than {LARGEST:,} bytes: not the archive")
    return content


def _unpack(archive: bytes, folder: Path, public: PublicCollection, url: str) -> None:
    """Copy the needed files out of the archive, under fixed names.

    Member names never become paths, and links and devices are not read.
    """
    import tarfile

    names = {name.lower(): name for name in public.sums} | dict(public.aliases)
    try:
        with tarfile.open(fileobj=BytesIO(archive)) as tar:
            for member in tar:
                if member.size > LARGEST:
                    raise FetchError(
                        f"{url} contains a file of {member.size:,} bytes, and was refused"
                    )
                wanted = names.get(PurePosixPath(member.name).name.lower())
                content = tar.extractfile(member) if wanted and member.isreg() else None
                if wanted and content:
                    (folder / wanted).write_bytes(content.read())
    except (tarfile.TarError, EOFError, zlib.error, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # of the disk; those of the archive have no number
        # For a file that is not an archive, tarfile adds one line per compression it has tried.
        reason = str(error).partition("\n")[0].rstrip(":")
        raise FetchError(f"{url} is not a complete tar archive ({reason}); try again") from None


def _wrong(public: PublicCollection, folder: Path) -> str | None:
    """Return which needed file is missing or changed; None if all are valid."""
    for name, expected in sorted(public.sums.items()):
        if not (folder / name).is_file():
            return f"{name} is missing"
        if text_sum(folder / name) != expected:
            return f"the sum of {name} is wrong"
    return None


# Installed packages, tests, and programs distributed with the library.
_OUTSIDE = frozenset(
    {"distutils", "idlelib", "lib2to3", "site-packages", "test", "tests", "turtledemo"}
)
_KINDS = {ast.Module: "module", ast.ClassDef: "class"}
_DEFINITIONS = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
_Definition = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def python_documents(root: Path) -> Iterator[Document]:
    """Stream one document for each module, class and function below `root` with a docstring.

    The id is the dotted name, followed by `#2` and so on if it is defined again; the title is the
    name and its kind, the text the docstring after `inspect.cleandoc`. Files are parsed with `ast`,
    not imported; files that do not parse and nested functions are skipped. Memory: one module.
    """
    # On some systems the library is a folder of links.
    for path in walk(root, Selection(follow_links=True)):
        module_path = path.relative_to(root)
        if path.suffix == ".py" and _OUTSIDE.isdisjoint(module_path.parts):
            parts = module_path.with_suffix("").parts
            # Modules in dist-packages, lib-dynload or config-3.11 cannot be imported by path.
            if all(part.isidentifier() for part in parts) and parts != ("__init__",):
                yield from _module(path, ".".join(parts).removesuffix(".__init__"))


def _module(path: Path, module: str) -> Iterator[Document]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes in strings
            tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return
    times: Counter[str] = Counter()
    for name, node in _definitions(tree, module):
        docstring = ast.get_docstring(node)
        if not docstring:
            continue
        times[name] += 1
        kind = _KINDS.get(type(node), "function")
        line = getattr(node, "lineno", 1)
        yield Document(
            id=name if times[name] == 1 else f"{name}#{times[name]}",
            title=f"{name} — {kind}",
            text=docstring,
            metadata={"kind": kind, "module": module, "line": line},
            origin=f"{path}:{line}",
        )


def _definitions(node: ast.AST, name: str) -> Iterator[tuple[str, _Definition]]:
    """Yield (dotted name, node) in source order, through classes, `if` and `try`."""
    if isinstance(node, ast.Module):
        yield name, node
    for child in ast.iter_child_nodes(node):
        if isinstance(child, _DEFINITIONS):
            inner = f"{name}.{child.name}"
            yield inner, child
            if isinstance(child, ast.ClassDef):
                yield from _definitions(child, inner)
        elif isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
            yield from _definitions(child, name)
