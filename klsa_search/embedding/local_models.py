"""Embedders in a local folder: ONNX models, and models of sentence-transformers.

    model.onnx or onnx/model.onnx      the graph, with model.onnx_data if its weights are apart
    tokenizer.json                     the tokenizer
    modules.json, 1_Pooling/config.json, sentence_bert_config.json,
    config_sentence_transformers.json  pooling, normalisation, maximum length and prompts, if given

This is the layout of ONNX models, as sentence-transformers exports them. Nothing is downloaded.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from klsa_search.core.installation import require
from klsa_search.embedding.model import Embeddings, EmbedKind, in_batches
from klsa_search.errors import SettingsError

_MAX_LENGTH: Final = 512  # tokens of a text, if the folder does not say
_BATCH: Final = 16
"""Texts that a model gets at once: 64 long texts would need a gigabyte for attention."""

_POOLED: Final = "sentence_embedding"  # output of graphs that contain the pooling


class OnnxEmbedder:
    """An ONNX model in a local folder, laid out as the module describes.

    folder   of the model
    threads  of one call; with one, the calling thread computes, and no other one spins
    MissingExtra; SettingsError if a file is missing or invalid, or for an unknown module or
    pooling. Cost: loading the model, and reading its files.
    """

    def __init__(self, folder: Path, *, threads: int = 1) -> None:
        require("onnx")
        import onnxruntime
        from tokenizers import Tokenizer

        self._folder, self.name = folder, folder.resolve().name
        graphs = [folder / name for name in ("model.onnx", "onnx/model.onnx")]
        graph = next(filter(Path.is_file, graphs), None)
        tokenizer = folder / "tokenizer.json"
        if graph is None or not tokenizer.is_file():
            missing = "tokenizer.json" if graph else "model.onnx or onnx/model.onnx"
            raise SettingsError(
                f"`{folder}` has no {missing}; name the folder of an ONNX model, as "
                "sentence-transformers exports it",
                field="embedder",
            )
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        options.log_severity_level = 3  # errors, which are raised too
        try:
            self._tokenizer = Tokenizer.from_file(str(tokenizer))
            self._session = onnxruntime.InferenceSession(
                str(graph), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # both raise their own types, which have no common base
            raise SettingsError(
                f"cannot load the model in `{folder}` ({error}); copy it again, or choose another",
                field="embedder",
            ) from error
        self._inputs = {input_.name for input_ in self._session.get_inputs()}
        outputs = [output.name for output in self._session.get_outputs()]
        self._is_pooled = _POOLED in outputs
        self._output = _POOLED if self._is_pooled else outputs[0]
        max_length = self._max_length()
        self._pad = int((self._tokenizer.padding or {}).get("pad_id", 0))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(max_length)
        self._normalise = self._has_normalisation()
        self._pooling = self._pooling_of()
        settings = self._file("config_sentence_transformers.json") or {}
        self._prompts: dict[str, str] = settings.get("prompts") or {}
        facts = {
            "pooling": self._pooling,
            "normalise": self._normalise,
            "max_length": max_length,
            "prompts": self._prompts,
        }
        digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode())
        for path in (*sorted(graph.parent.glob("model.onnx*")), tokenizer):
            digest.update(_sum_of(path))
        self.fingerprint = f"onnx:{digest.hexdigest()}"
        self.dimension = self.embed(["dimension"], "document").shape[1]

    def embed(self, texts: Sequence[str], kind: EmbedKind) -> Embeddings:
        """Return the vectors of texts."""
        prompt = self._prompts.get(kind, "")
        return np.stack(in_batches(self._vectors, [prompt + text for text in texts], _BATCH))

    def _vectors(self, texts: Sequence[str]) -> Embeddings:
        # One by one: a batch would start threads.
        encodings = [self._tokenizer.encode(text) for text in texts]
        shape = (len(texts), max(len(encoding.ids) for encoding in encodings))
        mask = np.zeros(shape, np.int64)
        feed = {
            "input_ids": np.full(shape, self._pad, np.int64),
            "attention_mask": mask,
            "token_type_ids": np.zeros(shape, np.int64),
        }
        for row, encoding in enumerate(encodings):
            length = len(encoding.ids)
            feed["input_ids"][row, :length] = encoding.ids
            mask[row, :length] = 1
            feed["token_type_ids"][row, :length] = encoding.type_ids
        (vectors,) = self._session.run(
            [self._output], {name: array for name, array in feed.items() if name in self._inputs}
        )
        if not self._is_pooled and vectors.ndim == 3:
            if self._pooling == "cls":
                vectors = vectors[:, 0]
            else:
                weights = mask[:, :, None].astype(np.float32)
                vectors = (vectors * weights).sum(1) / weights.sum(1)
        if self._normalise:
            vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True).clip(1e-12)
        return np.asarray(vectors, np.float32)

    def _file(self, name: str) -> Any:
        """Return the content of a JSON file of the folder; None if it is missing."""
        path = self._folder / name
        if not path.is_file():
            return None
        try:
            return json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise SettingsError(
                f"`{path}` is not valid JSON ({error}); copy the model again", field="embedder"
            ) from error

    def _max_length(self) -> int:
        limits = self._file("sentence_bert_config.json") or {}
        truncation = self._tokenizer.truncation or {}
        return int(limits.get("max_seq_length") or truncation.get("max_length") or _MAX_LENGTH)

    def _has_normalisation(self) -> bool:
        """Return whether vectors get length 1; SettingsError for an unknown module."""
        kinds = [str(module.get("type", "")) for module in self._file("modules.json") or []]
        names = [kind.rpartition(".")[2] for kind in kinds]
        unknown = sorted(set(names) - {"Transformer", "Pooling", "Normalize"})
        if unknown:
            raise SettingsError(
                f"the model in `{self._folder}` has a module {unknown[0]}, which is not supported; "
                "export it to ONNX with its pooling, or use sentence-transformers",
                field="embedder",
            )
        return not names or "Normalize" in names

    def _pooling_of(self) -> str:
        """Return "mean" or "cls"; SettingsError for another pooling."""
        config = self._file("1_Pooling/config.json")
        if config is None:
            return "mean"
        modes = [
            name for name, on in config.items() if name.startswith("pooling_mode_") and on is True
        ]
        pooling_modes = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "cls"}
        names = (
            [config["pooling_mode"]]
            if "pooling_mode" in config
            else [pooling_modes.get(m, m) for m in modes]
        )
        if names not in (["mean"], ["cls"]):
            raise SettingsError(
                f"the model in `{self._folder}` has the pooling {' and '.join(names)}, which is "
                "not supported; choose a model with mean or cls pooling",
                field="embedder",
            )
        return str(names[0])


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
            digest.update(name.encode() + b"\0" + _sum_of(path))
    return f"sentence-transformers:{digest.hexdigest()}"


def _sum_of(path: Path) -> bytes:
    """Return the SHA-256 of a file."""
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").digest()
