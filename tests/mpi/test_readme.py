"""The engines as README shows them, each on a torch module of its own."""

import json
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


RUN = """
import json, os, sys, traceback
for engine, text in json.loads(sys.argv[1]).items():
    try:
        exec(text, {"__name__": "__main__"})
        os.write(1, f"{engine} is right\\n".encode())
    except Exception:
        os.write(2, f"{engine}: {traceback.format_exc()}".encode())
"""


@pytest.fixture(scope="module")
def done(mpirun):
    """What two ranks printed that ran every block; those without MPI do the same on both."""
    scripts = {}
    for engine, after in AFTER.items():
        (block,) = [each for each in BLOCKS if engine in each.split("\n\n")[0]]
        assert len(block.splitlines()) <= 8
        scripts[engine] = f"{BEFORE}\n{block}\n{after}\n"
    return mpirun(2, ["-c", RUN], json.dumps(scripts))


@pytest.mark.parametrize("engine", AFTER)
def test_an_engine_of_the_readme_works(engine, done):
    assert done.stdout.count(f"{engine} is right") == 2, done.stderr
