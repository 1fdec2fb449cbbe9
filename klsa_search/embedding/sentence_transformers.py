"""Embedders of sentence-transformers, in a local folder."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from klsa_search.core.extras import require
from klsa_search.embedding.model import Embeddings, EmbedKind
from klsa_search.errors import SettingsError


class SentenceTransformersEmbedder:
    """A model of sentence-transformers; nothing is downloaded, and no code of the folder is run.

    MissingExtra; SettingsError if the folder has no model.
    """

    def __init__(self, folder: Path) -> None:
        require("sentence-transformers")
        from sentence_transformers import SentenceTransformer

        if not folder.is_dir():
            raise SettingsError(
                f"`{folder}` is not a folder; download the model, and name its folder",
                field="embedder",
            )
        try:
            self._model = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
        except Exception as error:  # the library raises errors of many others
            raise SettingsError(
                f"cannot load the model in `{folder}` ({error}); download it again, or choose "
                "another",
                field="embedder",
            ) from error
        self.name = folder.resolve().name
        self.fingerprint = _fingerprint(folder)
        self.dimension = self.embed(["dimension"], "document").shape[1]

    def embed(self, texts: Sequence[str], kind: EmbedKind) -> Embeddings:
        """Return the vectors of texts, with the prompt of the model for this kind, if any."""
        prompt = kind if (self._model.prompts or {}).get(kind) else None
        return np.asarray(
            self._model.encode(
                list(texts), prompt_name=prompt, convert_to_numpy=True, show_progress_bar=False
            )
        )


def _fingerprint(folder: Path) -> str:
    """Return the SHA-256 of names and contents of all files but hidden ones and texts about it."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and not name.startswith(".") and path.suffix != ".md":
            with path.open("rb") as content:
                digest.update(name.encode() + b"\0")
                digest.update(hashlib.file_digest(content, "sha256").digest())
    return f"sentence-transformers:{digest.hexdigest()}"
