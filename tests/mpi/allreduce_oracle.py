"""What all-reduces must give, written without the engine: inputs, sums, orders, error bounds."""

import functools

import numpy as np
import torch
from torch import Tensor

TENSORS = {
    "float32": torch.float32,
    "float64": torch.float64,
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
}
HALF = (torch.float16, torch.bfloat16)


@functools.cache
def worker_input(worker: int, size: int, dtype: torch.dtype) -> Tensor:
    """Return the values of one worker: of both signs and over four orders of magnitude."""
    random = np.random.default_rng([worker, size])
    values = random.standard_normal(size) * 10 ** random.uniform(-2, 2, size)
    return torch.from_numpy(values).to(dtype)


@functools.lru_cache(maxsize=16)
def exact_sum(workers: int, size: int, dtype: torch.dtype) -> tuple[np.ndarray, np.ndarray]:
    """Return the sum over the workers' inputs, and that of their magnitudes, in high precision."""
    high = np.longdouble if dtype == torch.float64 else np.float64
    total, scale = np.zeros(size, high), np.zeros(size, high)
    for worker in range(workers):
        values = worker_input(worker, size, dtype).double().numpy()
        total += values
        scale += np.abs(values)
    return total, scale


def wire_rounding(values: Tensor, wire: torch.dtype | None) -> Tensor:
    """Return the values as they are after a hop."""
    return values if wire is None else values.to(wire).to(values.dtype)


def ordered_sum(exchange: str, inputs: list[Tensor], wire: torch.dtype | None) -> Tensor | None:
    """Return the sum to the bit, where the order of additions is ours to say; None where not.

    The ring adds block b from rank b onwards and rounds at each hop; servers add in rank order
    what they received, their own part unrounded, and round the sum once.
    """
    dtype, size, n = inputs[0].dtype, len(inputs[0]), len(inputs)
    if dtype in HALF:
        wire = dtype
    wide = [values.float() if dtype in HALF else values for values in inputs]
    total = torch.empty_like(wide[0])
    for block in range(n):
        part = slice(size * block // n, size * (block + 1) // n)
        if exchange == "ring":
            order, rounds_partial_sums = [(block + k) % n for k in range(n)], True
            unrounded = range(n)
        elif exchange in ("ps", "ps_worker", "ps_sharded"):
            order, rounds_partial_sums = list(range(n)), False
            unrounded = {"ps": [], "ps_worker": [0], "ps_sharded": [block]}[exchange]
        else:
            return None
        sent = [
            values[part] if rank in unrounded else wire_rounding(values[part], wire)
            for rank, values in enumerate(wide)
        ]
        partial = sent[order[0]]
        for rank in order[1:]:
            partial = (wire_rounding(partial, wire) if rounds_partial_sums else partial) + sent[
                rank
            ]
        total[part] = wire_rounding(partial, wire) if n > 1 or exchange == "ps" else partial
    return total.to(dtype)


def error_in_bounds(exchange: str, n: int, wire: torch.dtype | None, output: Tensor) -> float:
    """Return the largest error against the float64 sum as a fraction of what rounding allows.

    n - 1 additions in float32 (or float64) and h roundings to half precision allow
    ((1 + u)^(n - 1) (1 + u_half)^h - 1) Σ|x|, where u is half the type's epsilon. h is n for the
    ring (each partial sum that travels, and the finished one), 2 for the servers (each
    contribution, and the sum), 1 where only the result is rounded.
    """
    dtype = output.dtype
    half = wire or (dtype if dtype in HALF else None)
    additions = torch.float64 if dtype == torch.float64 else torch.float32
    grown = (1 + torch.finfo(additions).eps / 2) ** (n - 1)
    floor = 0.0
    if half is not None:
        hops = {"ring": n, "auto": n, "mpi": 1, "gloo": 1}.get(exchange, 2)
        grown *= (1 + torch.finfo(half).eps / 2) ** hops
        floor = hops * torch.finfo(half).smallest_normal * torch.finfo(half).eps
    exact, scale = exact_sum(n, len(output), dtype)
    error = np.abs(output.double().numpy() - exact)
    allowed = scale * (grown - 1) * (1 + 1e-9) + n * 2**-52 * scale + floor
    over = error[allowed == 0]
    assert not over.any(), "an error where there is nothing to round"
    return float((error[allowed > 0] / allowed[allowed > 0]).max(initial=0.0))
