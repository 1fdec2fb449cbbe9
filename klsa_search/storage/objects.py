"""Object stores: named byte strings in a directory, or at a URL of fsspec (`s3://bucket/prefix`).

    store = open_store(target)
    store.write("objects/5a0c...", content)
    store.read("objects/5a0c...") -> bytes
    store.sizes("objects") -> {name: bytes}
    store.remove("objects/5a0c...")

An object is written as a whole or not at all, and is durable when the call returns. Methods raise
StoreError, also for an object that does not exist. Safe to share between threads.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from klsa_search.core.installation import require
from klsa_search.errors import SettingsError, StoreError
from klsa_search.storage.files import exclusive_lock, explain, read_regular, replace_file

_PASSWORD: Final = re.compile(r"://[^/]*:[^/]*@")

_LOCK: Final = ".lock"

_LARGEST = 2**40
"""More bytes than any object has."""


def absolute(target: str) -> str:
    """Return a URL, or the absolute path of a directory, for processes that run elsewhere."""
    return target if "://" in target else str(Path(target).absolute())


def open_store(target: str) -> ObjectStore:
    """Return the store of a directory or a URL.

    MissingExtra; SettingsError for a URL with a password, StoreError for an unusable one.
    """
    if "://" in target:
        refuse_password(target)
        return _RemoteStore(target)
    return ObjectStore(Path(target))


def refuse_password(url: str) -> None:
    """Raise SettingsError if a URL has a password: command lines, logs and answers show URLs."""
    scheme, separator, _ = url.partition("://")
    if separator and _PASSWORD.search(url):
        raise SettingsError(
            f"the URL `{scheme}://...` has a password, which command lines and logs would show; "
            "leave it out, and set it in a variable of the environment, such as "
            "AWS_SECRET_ACCESS_KEY or FSSPEC_SFTP_PASSWORD (docs/guides/backup-and-upgrades.md)"
        )


class ObjectStore:
    """Named byte strings, as files of a directory; a name is `folder/name`."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def sizes(self, folder: str) -> dict[str, int]:
        """Return the sizes in bytes of the objects of a folder, by name without the folder."""
        with self._translated(folder):
            try:
                with os.scandir(self._root / folder) as entries:
                    return {
                        entry.name: entry.stat().st_size for entry in entries if entry.is_file()
                    }
            except FileNotFoundError:
                return {}

    def read(self, name: str) -> bytes:
        """Return the content of an object."""
        with self._translated(name):
            return read_regular(self._root / name, _LARGEST)

    def write(self, name: str, content: bytes) -> None:
        """Write an object, or replace it."""
        path = self._root / name
        with self._translated(""):  # names differ at each attempt, and failures are logged once
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(path, content)

    def remove(self, name: str) -> None:
        """Remove an object, if it exists."""
        with self._translated(name):
            (self._root / name).unlink(missing_ok=True)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other writers away, if the storage can; IndexBusy while there is one."""
        with self._translated(""):
            self._root.mkdir(parents=True, exist_ok=True)
        with exclusive_lock(self._root / _LOCK):
            yield

    @contextmanager
    def _translated(self, name: str) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError as error:
            raise StoreError(_missing(self._root / name)) from error
        except OSError as error:
            step = "check its owner and permissions"
            raise StoreError(explain(error, self._root / name, step)) from error


class _RemoteStore(ObjectStore):
    """Objects at a URL of fsspec."""

    def __init__(self, url: str) -> None:
        require("remote")
        import fsspec

        self._url = url.rstrip("/")
        self._files: Any
        with self._translated(""):
            self._files, self._prefix = fsspec.url_to_fs(self._url)

    def sizes(self, folder: str) -> dict[str, int]:
        with self._translated(folder):
            self._files.invalidate_cache()  # other processes write, too
            entries = self._files.find(f"{self._prefix}/{folder}", detail=True)
            return {path.rpartition("/")[2]: file["size"] for path, file in entries.items()}

    def read(self, name: str) -> bytes:
        with self._translated(name):
            return bytes(self._files.cat_file(f"{self._prefix}/{name}"))

    def write(self, name: str, content: bytes) -> None:
        with self._translated(""):  # as above
            self._files.pipe_file(f"{self._prefix}/{name}", content)

    def remove(self, name: str) -> None:
        with self._translated(name), suppress(FileNotFoundError):
            self._files.rm_file(f"{self._prefix}/{name}")

    @contextmanager
    def lock(self) -> Iterator[None]:
        yield  # object storage has no locks

    @contextmanager
    def _translated(self, name: str) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError as error:
            raise StoreError(_missing(f"{self._url}/{name}")) from error
        except Exception as error:  # each file system has others
            fact = " ".join(str(error).split()) or type(error).__name__
            raise StoreError(
                f"cannot use `{self._url}/{name}`: {fact}; check the URL, its credentials and the "
                "network"
            ) from error


def _missing(name: object) -> str:
    return f"`{name}` does not exist; it may have been removed meanwhile, then try again"
