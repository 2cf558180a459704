"""All-reduces over real MPI: right sums, equal bits, repeatable, and exactly the bytes expected.

One job of nine ranks runs every case over its first 1…8 workers (`allreduce_cases.py`), or of four
ranks in the first tier; the tests look at what it printed.
"""

import json
from collections import Counter
from pathlib import Path

import pytest

from tiers import first_tier

CASES = Path(__file__).with_name("allreduce_cases.py")
EXCHANGES = ("ring", "auto", "ps", "ps_worker", "ps_sharded", "mpi", "gloo")
ORDERED = ("ring", "ps", "ps_worker", "ps_sharded")
LIBRARIES = ("mpi", "gloo")
WORKERS = range(1, 9)
PIECE = 2**21
AUTO = 64 * 2**10
ITEMSIZE = {"float16": 2, "bfloat16": 2, "float32": 4, "float64": 8}

# Arrays of some MB come and go; without this each of them costs a thousand page faults.
ENVIRONMENT = {"MALLOC_MMAP_THRESHOLD_": str(2**30), "MALLOC_TRIM_THRESHOLD_": str(2**30)}


def run_cases(mpirun, ranks):
    done = mpirun(ranks, CASES, timeout=300, env=ENVIRONMENT)
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture(scope="module")
def lines(mpirun, both_tiers):
    return run_cases(mpirun, 9 if both_tiers else 4)


@pytest.fixture(scope="module")
def cases(lines):
    """The cases by exchange and number of workers."""
    found = {}
    for line in lines:
        if "digests" in line:
            found.setdefault((line["exchange"], line["workers"]), []).append(line)
    return found


every_exchange = pytest.mark.parametrize("exchange", EXCHANGES)
every_size = pytest.mark.parametrize("n", first_tier(WORKERS, 1, 2, 3))


def name(line):
    return f"{line['size']} values of {line['kind']}, {line['wire']} on the wire"


@every_exchange
@every_size
def test_sizes_and_types_that_were_run(cases, exchange, n):
    ran = {(line["kind"], line["wire"], line["size"]) for line in cases[exchange, n]}
    for kind in ("float32", "float64"):
        for size in (0, 1, n - 1, n, n + 1, 1_000_003):
            assert (kind, "float32", size) in ran
    for kind in ("float16", "bfloat16"):
        assert (kind, "float32", 10_007) in ran
        assert ("float32", kind, 10_007) in ran or exchange in LIBRARIES


@every_exchange
@every_size
def test_sums_are_within_rounding_of_the_exact_ones(cases, exchange, n):
    for line in cases[exchange, n]:
        assert line["error"] <= 1, name(line)


@every_exchange
@every_size
def test_ranks_and_repeats_are_bitwise_equal(cases, exchange, n):
    for line in cases[exchange, n]:
        ranks = n + (exchange == "ps")
        assert len(line["digests"]) == ranks
        assert len({bits for repeats in line["digests"] for bits in repeats}) == 1, name(line)


@pytest.mark.parametrize("exchange", ORDERED)
@every_size
def test_order_of_additions_and_roundings(cases, exchange, n):
    """Equal to the bit to a serial sum: float32 sums, half precision only where values travel."""
    for line in cases[exchange, n]:
        assert line["digests"][0][0] == line["expected"], name(line)


@pytest.mark.full
def test_another_job_gives_the_same_bits(mpirun, cases):
    again = [line for line in run_cases(mpirun, 4) if "digests" in line]
    assert {line["workers"] for line in again} == {1, 2, 3}
    first = {
        (line["exchange"], line["workers"], name(line)): line["digests"]
        for rows in cases.values()
        for line in rows
    }
    for line in again:
        assert first[line["exchange"], line["workers"], name(line)] == line["digests"], name(line)


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
@pytest.mark.parametrize("exchange", [name for name in EXCHANGES if name != "ring"])
def test_sums_of_half_precision_are_float32(lines, exchange, kind):
    """Addends of 0.75 beside a value whose neighbours are 2 away: 5.25 of seven rounds to 6."""
    rows = [
        line for line in lines if line.get("vanishing") == kind and line["exchange"] == exchange
    ]
    assert rows[-1]["workers"] in (3, 8)
    for row in rows:
        assert set(row["values"]) == {2.0 * round(0.75 * (row["workers"] - 1) / 2)}


@every_exchange
@every_size
def test_other_tensors_are_refused_by_every_rank(lines, exchange, n):
    ranks = n + (exchange == "ps")
    (line,) = (
        line
        for line in lines
        if "refused" in line and line["exchange"] == exchange and line["ranks"] == ranks
    )
    assert line["refused"] == dict.fromkeys(line["refused"], True)
    assert {"transposed", "every second", "int64"} <= line["refused"].keys()


def expected_counts(exchange, n, size, itemsize):
    """Return for each rank a counter of (way, peer, phase) → [bytes, messages], from the papers.

    Block b of n has floor(size (b + 1) / n) - floor(size b / n) values; a message is 2 MiB at
    most, and nothing is sent for an empty block.
    """
    block = [(size * (b + 1) // n - size * b // n) * itemsize for b in range(n)]
    whole = size * itemsize
    ranks = [Counter() for _ in range(n + (exchange == "ps"))]

    def send(rank, to, phase, length):
        if length:
            messages = -(-length // PIECE)
            for key, amount in (("bytes", length), ("messages", messages)):
                ranks[rank]["sent", to, phase, key] += amount
                ranks[to]["received", rank, phase, key] += amount

    if exchange == "ring" and n > 1:
        for rank in range(n):
            right = (rank + 1) % n
            for b in range(n):
                if b != right:  # the block that the rank itself finishes
                    send(rank, right, "scatter", block[b])
                if b != (rank + 2) % n:  # the block that its right neighbour finishes
                    send(rank, right, "gather", block[b])
    if exchange in ("ps", "ps_worker"):
        for rank in range(1, len(ranks)):
            send(rank, 0, "push", whole)
            send(0, rank, "pull", whole)
    if exchange == "ps_sharded":
        for rank in range(n):
            for other in range(n):
                if other != rank:
                    send(rank, other, "push", block[other])
                    send(rank, other, "pull", block[rank])
    return ranks


def counted(rows):
    found = Counter()
    for way, peer, phase, length, messages in rows:
        found[way, peer, phase, "bytes"] = length
        found[way, peer, phase, "messages"] = messages
    return found


def itemsize(line):
    return ITEMSIZE[line["kind"] if line["wire"] == "float32" else line["wire"]]


@every_exchange
@every_size
def test_bytes_and_messages_of_every_rank_peer_and_phase(cases, exchange, n):
    for line in cases[exchange, n]:
        small = line["size"] * ITEMSIZE[line["kind"]] < AUTO and line["wire"] == "float32"
        chosen = {"auto": "mpi" if small else "ring"}.get(exchange, exchange)
        expected = expected_counts(chosen, n, line["size"], itemsize(line))
        assert [counted(rows) for rows in line["counts"]] == expected, name(line)


@pytest.mark.parametrize("exchange", ORDERED)
@every_size
def test_closed_formulas_of_traffic(cases, exchange, n):
    """2 (n - 1) K in all, 2 n K with a server of its own; spread evenly, or all at the server."""
    for line in cases[exchange, n]:
        size, item = line["size"], itemsize(line)
        sent = [
            sum(length for way, _, _, length, _ in rows if way == "sent") for rows in line["counts"]
        ]
        received = [
            sum(length for way, _, _, length, _ in rows if way == "received")
            for rows in line["counts"]
        ]
        others = n if exchange == "ps" else n - 1
        assert sum(sent) == sum(received) == 2 * others * size * item
        if exchange in ("ps", "ps_worker"):
            assert sent[0] + received[0] == 2 * others * size * item
        else:
            for length in sent + received:
                rounds = 2 * (n - 1)
                assert abs(length - rounds * size * item / n) <= rounds * item
