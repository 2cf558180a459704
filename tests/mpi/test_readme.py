"""The engines as README shows them, each on a torch module of its own."""

import re
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "README.md"
SECTION = README.read_text(encoding="utf-8").split("## Engines")[1].split("\n## ")[0]
BLOCKS = re.findall(r"```python\n(.*?)```", SECTION, re.DOTALL)
BEFORE = """
import torch
from torch import nn
torch.manual_seed(0)
model, loss = nn.Linear(4, 2), nn.MSELoss()
inputs, targets = torch.ones(3, 4), torch.zeros(3, 2)
encoder, head, frames = nn.Sequential(nn.Linear(4, 3), nn.Tanh()), nn.Linear(3, 1), torch.ones(8, 4)
alone = nn.Linear(4, 2)
alone.load_state_dict(model.state_dict())
loss(alone(inputs), targets).backward()
"""
AFTER = {
    "ring_allreduce": "assert torch.allclose(model.weight.grad, 2 * alone.weight.grad)",
    "ParameterServer": "assert torch.allclose(model.weight.grad, 2 * alone.weight.grad)",
    "Pipeline": "assert answer.index == 7 and answer.output.shape == (1,)",
    "StochasticBackward": "assert (features == encoder(frames)).all()",
}


@pytest.mark.parametrize("engine", AFTER)
def test_an_engine_of_the_readme_works(engine, mpirun, tmp_path):
    (block,) = [each for each in BLOCKS if engine in each.split("\n\n")[0]]
    assert len(block.splitlines()) <= 8
    script = tmp_path / "script.py"
    script.write_text(f"{BEFORE}\n{block}\n{AFTER[engine]}\nprint('right')\n")
    done = mpirun(2 if "MPI" in block else 1, script)
    assert done.returncode == 0, done.stderr
    assert "right" in done.stdout
