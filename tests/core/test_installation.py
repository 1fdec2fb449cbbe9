import sys
from importlib.machinery import ModuleSpec
from types import ModuleType

import pytest

from klsa_search.core.installation import require
from klsa_search.errors import MissingExtra

EXTRAS = {
    "estimators": {"sklearn": "scikit-learn"},
    "eval": {"ir_measures": "ir-measures", "pytrec_eval": "pytrec-eval-terrier"},
    "figures": {"matplotlib": "matplotlib"},
    "files": {"lxml": "lxml", "pypdfium2": "pypdfium2"},
    "haystack": {"haystack": "haystack-ai"},
    "irds": {"ir_datasets": "ir-datasets"},
    "langchain": {"langchain_core": "langchain-core"},
    "mcp": {"mcp": "mcp", "mcp_types": "version 2 of mcp"},
    "onnx": {"onnxruntime": "onnxruntime", "tokenizers": "tokenizers"},
    "pyterrier": {"pyterrier": "pyterrier"},
    "sentence-transformers": {"sentence_transformers": "sentence-transformers"},
    "tables": {"pyarrow": "pyarrow", "python_calamine": "python-calamine"},
    "watch": {"watchfiles": "watchfiles"},
}


@pytest.mark.parametrize(
    ("name", "module", "package"),
    [(name, *each) for name, packages in EXTRAS.items() for each in packages.items()],
)
def test_a_missing_package_is_named_with_its_extra(monkeypatch, name, module, package):
    for each in EXTRAS[name]:
        installed = ModuleType(each)
        installed.__spec__ = ModuleSpec(each, None)
        monkeypatch.setitem(sys.modules, each, installed)
    require(name)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra, match=rf"need {package}, .*'klsa-search\[{name}\]'"):
        require(name)
