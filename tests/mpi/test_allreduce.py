"""All-reduces over real MPI: right sums, equal bits, repeatable, and exactly the bytes expected.

One job of nine ranks runs every case over its first 1…8 workers (`allreduce_cases.py`), or of four
ranks in the first tier; the tests look at what it printed.
"""

from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from mpi.allreduce_cases import BAD, EXCHANGES
from tiers import first_tier

CASES = Path(__file__).with_name("allreduce_cases.py")
ORDERED = ("ring", "ps", "ps_worker", "ps_sharded")
PIECE = 2**21
AUTO = 64 * 2**10
ITEMSIZE = {"float16": 2, "bfloat16": 2, "float32": 4, "float64": 8}
EVERY = [f"{n}:{exchange}" for n in range(1, 9) for exchange in EXCHANGES]
FIRST = [word for word in EVERY if word[0] in "123"]

# Arrays of some MB come and go; without this each of them costs a thousand page faults.
ENVIRONMENT = {"MALLOC_MMAP_THRESHOLD_": str(2**30), "MALLOC_TRIM_THRESHOLD_": str(2**30)}


class Place(NamedTuple):
    """What came of an exchange on so many workers."""

    exchange: str
    n: int
    ranks: int
    row: dict


@pytest.fixture(scope="module")
def job(rows_of, both_tiers):
    words = (9, EVERY) if both_tiers else (4, FIRST)
    return rows_of(words[0], CASES, *words[1], timeout=300, env=ENVIRONMENT)


@pytest.fixture(params=first_tier(EVERY, *FIRST))
def place(job, request):
    n, exchange = request.param.split(":")
    return Place(exchange, int(n), int(n) + (exchange == "ps"), job[request.param])


def name(line):
    return f"{line['size']} values of {line['kind']}, {line['wire']} on the wire"


def test_sums_are_right_and_bitwise_equal_on_all_ranks_and_in_repeats(place):
    """Where the order of additions is ours, the bits are those of a serial sum.

    Sums are of float32, and half precision is only where values travel.
    """
    for line in place.row["cases"]:
        assert line["error"] <= 1, name(line)
        assert len(line["digests"]) == place.ranks
        (bits,) = {bits for repeats in line["digests"] for bits in repeats}
        assert line["expected"] == (bits if place.exchange in ORDERED else None), name(line)


@pytest.mark.full
def test_another_job_gives_the_same_bits(rows_of, job):
    again = rows_of(4, CASES, *FIRST, timeout=300, env=ENVIRONMENT)
    assert again.keys() == set(FIRST)
    for word, row in again.items():
        bits = [[line["digests"] for line in each["cases"]] for each in (row, job[word])]
        assert bits[0] == bits[1], word


def test_sums_of_half_precision_are_float32(place):
    """Addends of 0.75 beside a value whose neighbours are 2 away: 5.25 of seven rounds to 6."""
    if place.exchange != "ring" and place.n in (3, 8):
        total = 2.0 * round(0.75 * (place.n - 1) / 2)
        assert place.row["vanishing"] == [[total] * 17] * 2


def test_other_tensors_are_refused_by_every_rank(place):
    assert place.row["refused"] == [list(BAD)] * place.ranks


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
            for key, amount in (("bytes", length), ("messages", -(-length // PIECE))):
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


def test_bytes_and_messages_of_every_rank_peer_and_phase(place):
    for line in place.row["cases"]:
        small = line["size"] * ITEMSIZE[line["kind"]] < AUTO and line["wire"] == "float32"
        chosen = {"auto": "mpi" if small else "ring"}.get(place.exchange, place.exchange)
        expected = expected_counts(chosen, place.n, line["size"], itemsize(line))
        assert [counted(rows) for rows in line["counts"]] == expected, name(line)
