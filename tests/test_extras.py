import sys

import pytest

from klsa_search.errors import MissingExtra
from klsa_search.extras import require


@pytest.mark.parametrize(
    ("name", "module", "package"),
    [
        ("estimators", "sklearn", "scikit-learn"),
        ("eval", "ir_measures", "ir-measures"),
        ("eval", "pytrec_eval", "pytrec-eval-terrier"),
        ("figures", "matplotlib", "matplotlib"),
    ],
)
def test_a_missing_package_is_named_with_its_extra(monkeypatch, name, module, package):
    require(name)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra, match=rf"need {package}, .*'klsa-search\[{name}\]'"):
        require(name)
