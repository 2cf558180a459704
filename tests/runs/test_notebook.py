"""The notebook of examples/ runs from its first cell to its last."""

import json
import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

NOTEBOOK = Path(__file__).parents[2] / "examples" / "first_steps.ipynb"
# Jupyter shows the value of a cell's last line
RUN = """
import ast, json, sys
names = {"__name__": "__main__"}
for cell in json.loads(sys.stdin.read()):
    tree = ast.parse(cell)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), names)
    if last is not None:
        print(repr(eval(compile(ast.Expression(last.value), "cell", "eval"), names)))
    print("-----", flush=True)
"""


def cells() -> list[str]:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    return [cell.source for cell in notebook.cells if cell.cell_type == "code"]


def test_it_is_a_sound_notebook_without_outputs():
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    assert all(not cell.outputs for cell in notebook.cells if cell.cell_type == "code")
    assert len(json.dumps(notebook)) < 10_000


@pytest.mark.full
def test_its_cells_run_and_show_events_scores_and_a_learned_model(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", RUN],
        input=json.dumps(cells()),
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "MPLBACKEND": "agg", "TMPDIR": str(tmp_path), "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    rendered, proposed, scored, plotted, corrected, learned, again, rest = done.stdout.split(
        "-----\n"
    )
    assert rendered.count("demo_00") == 3
    assert "Proposer('demo'): sees motion" in proposed
    assert " proposals and " in proposed
    assert 0 < eval(scored, {"np": __import__("numpy")})["AUC"] < 100
    assert "Legend" in plotted
    assert corrected.startswith("video,start,end,label,status\ndemo_000,")
    assert "\ndemo_001," in corrected
    assert "2 corrected videos" in learned
    assert "mine/model.safetensors" in again
    assert "'AUC'" in again
    assert rest == ""
