"""The evaluator of candidates (PEM of BSN): features to the tIoU that a candidate may have."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from actionspan import __version__
from actionspan.errors import InputError
from actionspan.files.torch_files import write_torch
from actionspan.proposals.bsp import FEATURES
from actionspan.proposals.inputs import BOUNDARY_INPUTS, boundary_inputs
from actionspan.proposals.pgm import Candidates


class ProposalEvaluator(nn.Module):
    """Linear(32 → hidden), ReLU, Linear(hidden → 1), sigmoid.

    One with 35 inputs also sees p_start, p_end and the length (`boundary_scores`).
    """

    def __init__(self, hidden: int = 256, features: int = FEATURES) -> None:
        super().__init__()
        self.hidden = nn.Linear(features, hidden)
        self.output = nn.Linear(hidden, 1)

    def forward(self, features: Tensor) -> Tensor:
        """Return the expected tIoU, (M,) in 0…1, of (M, 32) features."""
        hidden = torch.relu(self.hidden(features))  # (M, hidden)
        iou: Tensor = torch.sigmoid(self.output(hidden)).squeeze(1)
        return iou

    def evaluate(self, features: ArrayLike) -> NDArray[np.float32]:
        """Return the expected tIoU, (M,), of one video's candidates, (M, 32).

        It runs on one thread and must be called for one video at a time: then a video's numbers
        depend neither on the other videos nor on the number of threads.
        """
        inputs = torch.from_numpy(np.array(features, np.float32))
        with one_thread(), torch.inference_mode():
            iou: NDArray[np.float32] = self(inputs).numpy()
        return iou

    def evaluate_candidates(self, candidates: Candidates) -> NDArray[np.float32]:
        """Return the expected tIoU, (M,), of one video's candidates from what this one sees."""
        inputs = candidates.features
        if self.hidden.in_features == inputs.shape[1] + BOUNDARY_INPUTS:
            more = boundary_inputs(candidates.scores, candidates.segments)
            inputs = np.concatenate([inputs, more], axis=1)
        return self.evaluate(inputs)


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch compute on one thread inside the block."""
    threads = torch.get_num_threads()
    if threads == 1:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def evaluator_state(evaluator: ProposalEvaluator) -> dict[str, Any]:
    """Return what `evaluator_from_state` needs, in types `torch.load(weights_only=True)` allows."""
    return {
        "hidden": evaluator.hidden.out_features,
        "features": evaluator.hidden.in_features,
        "weights": evaluator.state_dict(),
    }


def evaluator_from_state(state: dict[str, Any]) -> ProposalEvaluator:
    """Build the evaluator `evaluator_state` described."""
    evaluator = ProposalEvaluator(hidden=state["hidden"], features=state["features"])
    evaluator.load_state_dict(state["weights"])
    return evaluator.eval()


def save_evaluator(
    path: Path, evaluator: ProposalEvaluator, settings_digest: str, **more: Any
) -> None:
    """Write the evaluator, atomically; equal weights give equal bytes.

    Args:
        path: The file to write.
        evaluator: What to save.
        settings_digest: The digest of all that made it.
        more: Plain values to keep with it, e.g. settings.
    """
    content = {
        "kind": "actionspan proposal evaluator",
        "actionspan_version": __version__,
        "digest": settings_digest,
        "evaluator": evaluator_state(evaluator),
        **more,
    }
    write_torch(path, content)


def load_evaluator(path: Path) -> ProposalEvaluator:
    """Read what `save_evaluator` wrote.

    Raises:
        InputError: The file is missing or holds no evaluator.
    """
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
        return evaluator_from_state(content["evaluator"])
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except Exception:
        raise InputError(
            f"{path}: not a proposal evaluator; `actionspan proposals train` makes one"
        ) from None
