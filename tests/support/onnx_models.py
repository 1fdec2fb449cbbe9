"""Tiny ONNX models, written as protocol buffers, so that tests need no package that writes them.

The numbers of fields and types are those of onnx.proto.
"""

import json
from pathlib import Path

import numpy as np

FLOAT, INT64 = 1, 7
WORDS = ("[PAD]", "[UNK]", "cold", "engines", "stall", "wet", "roads", "bald", "tyres", "slip")


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def _field(number: int, value: int | str | bytes) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    content = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _tensor(name: str, array: np.ndarray) -> bytes:
    kind = FLOAT if array.dtype == np.float32 else INT64
    dims = b"".join(_field(1, size) for size in array.shape)
    return dims + _field(2, kind) + _field(8, name) + _field(9, array.tobytes())


def _value(name: str, kind: int, shape: list[int | str]) -> bytes:
    dims = [_field(1, _field(1 if isinstance(size, int) else 2, size)) for size in shape]
    tensor = _field(1, kind) + _field(2, b"".join(dims))
    return _field(1, name) + _field(2, _field(1, tensor))


def _node(operator: str, inputs: list[str], output: str) -> bytes:
    names = b"".join(_field(1, name) for name in inputs)
    return names + _field(2, output) + _field(4, operator)


def _model(nodes: list[bytes], tensors: dict[str, np.ndarray], output: bytes) -> bytes:
    names = ("input_ids", "attention_mask")
    graph = b"".join(
        [
            *(_field(1, node) for node in nodes),
            _field(2, "tiny"),
            *(_field(5, _tensor(name, array)) for name, array in tensors.items()),
            *(_field(11, _value(name, INT64, ["batch", "length"])) for name in names),
            _field(12, output),
        ]
    )
    opset = _field(1, "") + _field(2, 17)
    return _field(1, 8) + _field(7, graph) + _field(8, opset)


def _write(folder: Path, model: bytes) -> Path:
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace

    folder.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(model)
    numbers = {word: number for number, word in enumerate(WORDS)}
    tokenizer = Tokenizer(WordLevel(numbers, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def vectors_of_words(dimension: int = 4, seed: int = 0) -> np.ndarray:
    """The embedding of each word in `write_embedder`."""
    return np.random.default_rng(seed).normal(size=(len(WORDS), dimension)).astype(np.float32)


def write_embedder(folder: Path, *, seed: int = 0, **files: object) -> Path:
    """Write a model whose output for a token is a random vector of its word.

    files  JSON files of the folder, by name with __ for / and without suffix
    """
    table = vectors_of_words(seed=seed)
    nodes = [_node("Gather", ["table", "input_ids"], "last_hidden_state")]
    output = _value("last_hidden_state", FLOAT, ["batch", "length", table.shape[1]])
    _write(folder, _model(nodes, {"table": table}, output))
    for name, content in files.items():
        path = folder / f"{name.replace('__', '/')}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(content))
    return folder
