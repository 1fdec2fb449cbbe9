"""Run the notebooks and store what they print and draw: python -m tools.notebooks [NAME ...]."""

import base64
import contextlib
import io
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt

from tests.conftest import ROOT

FOLDER = ROOT / "notebooks"


def run(path):
    """Run the cells of a notebook in a temporary folder beside links to what they read."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    home, here = tempfile.mkdtemp(), Path.cwd()
    try:
        for name in ("docs", "studies"):
            Path(home, name).symlink_to(ROOT / name)
        Path(home, "notebooks").mkdir()
        os.chdir(Path(home, "notebooks"))
        names = {}
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                cell["outputs"] = outputs_of("".join(cell["source"]), names)
    finally:
        os.chdir(here)
        shutil.rmtree(home)
    text = json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"
    path.write_text(text, encoding="utf-8")


def outputs_of(source, names):
    """Run a cell and return its outputs: a text, and the figures that it opened."""
    before = plt.get_fignums()
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(source, names)
    outputs = []
    if printed.getvalue():
        text = printed.getvalue().splitlines(keepends=True)
        outputs.append({"name": "stdout", "output_type": "stream", "text": text})
    for number in plt.get_fignums():
        if number not in before:
            data = io.BytesIO()
            plt.figure(number).savefig(data, format="png", bbox_inches="tight")
            image = base64.b64encode(data.getvalue()).decode()
            shown = {"image/png": image, "text/plain": ["<Figure>"]}
            outputs.append({"data": shown, "metadata": {}, "output_type": "display_data"})
    return outputs


if __name__ == "__main__":
    plt.switch_backend("agg")
    for name in sys.argv[1:] or sorted(path.stem for path in FOLDER.glob("*.ipynb")):
        run(FOLDER / f"{name}.ipynb")
