"""What an all-reduce must send, and how long that takes at best, in closed form.

n workers sum K bytes over links of B bytes per second, each full duplex.

| algorithm    | payload of all ranks | the busiest link carries   | bandwidth bound |
|--------------|---------------------:|----------------------------|----------------:|
| `ring`       | 2 (n-1) K            | 2 (n-1)/n K in and out     | 2 (n-1)/n K / B |
| `ps_sharded` | 2 (n-1) K            | 2 (n-1)/n K in and out     | 2 (n-1)/n K / B |
| `mpi`        | at least 2 (n-1) K   | at least 2 (n-1)/n K       | 2 (n-1)/n K / B |
| `ps_worker`  | 2 (n-1) K            | (n-1) K in, then (n-1) K out | 2 (n-1) K / B |
| `ps`         | 2 n K                | n K in, then n K out       | 2 n K / B       |

No one-way all-reduce sends less than 2 (n-1) K in total: n-1 messages to bring an element's parts
together, n-1 to tell the others. The two central servers answer only when they have received every
tensor whole, so that the two directions of their link are busy in turn. A central server that cuts
tensors into pieces and overlaps the directions may reach half of their bounds: `duplex_seconds`.
"""

CENTRAL = ("ps_worker", "ps")
ALGORITHMS = ("ring", "ps_sharded", "mpi", *CENTRAL)


def payload_bytes(algorithm: str, workers: int, size: int) -> int:
    """Return the bytes that all ranks together send in one all-reduce of `size` bytes."""
    return 2 * (workers if algorithm == "ps" else workers - 1) * size


def bound_seconds(algorithm: str, workers: int, size: int, mbit: float) -> float:
    """Return the least time of an all-reduce of `size` bytes, by the links' rate alone."""
    links = 1 if algorithm in CENTRAL else workers
    return payload_bytes(algorithm, workers, size) / links * 8 / (mbit * 1e6)


def duplex_seconds(algorithm: str, workers: int, size: int, mbit: float) -> float:
    """Return the least time if both directions of every link are busy at once."""
    bound = bound_seconds(algorithm, workers, size, mbit)
    return bound / 2 if algorithm in CENTRAL else bound
