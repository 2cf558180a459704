"""Simulated ranks: the engine itself over virtual time, and thousands of clocks without it."""

import threading

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from actionspan.parallel import ParameterServer, ring_allreduce
from simulation.ranks import Costs, run_simulated
from simulation.rounds import ALGORITHMS, SERIES, simulated_seconds

PLACEMENTS = {"ps": "own_rank", "ps_worker": "on_worker", "ps_sharded": "sharded"}
OURS = ("ring", *PLACEMENTS)
SLOW_NETWORK = Costs(1e-4, 1e-8, 1e-10)
SLOW_ADDITIONS = Costs(3e-6, 1e-9, 7e-9)
BURSTS = Costs(1e-5, 1e-8, 1e-9, 20_000.0)
MIB = 2**20


def engine_seconds(algorithm, workers, size, costs):
    """Return the seconds of the engine's own code, whose sums must be right.

    Where there are bursts, of the last of several that begin together.
    """
    ranks = workers + (algorithm == "ps")
    barrier, comms = threading.Barrier(ranks), []

    def begin_together(comm):
        comms.append(comm)  # once a run; all are the same ones
        barrier.wait(timeout=30)
        latest = max(comm.seconds for comm in comms)
        barrier.wait(timeout=30)
        comm.seconds = latest
        return latest

    def sum_ones(comm):
        begun = 0.0
        for repeat in range(SERIES if costs.burst else 1):
            if repeat:
                begun = begin_together(comm)
            tensor = torch.ones(size)
            if algorithm == "ring":
                ring_allreduce(tensor, comm)
            else:
                ParameterServer(comm, PLACEMENTS[algorithm]).allreduce(tensor)
            assert (tensor == workers).all()
        return begun

    begun, ended = run_simulated(ranks, sum_ones, *costs)
    return ended - begun


SIZES = st.sampled_from([0, 1, 10_007]) | st.integers(0, 300_000)


@settings(max_examples=60)
@given(
    st.sampled_from(OURS),
    st.integers(1, 16),
    SIZES,
    st.tuples(*[st.floats(0, 1e-3), st.floats(0, 1e-7), st.floats(0, 1e-7), st.floats(0, 1e6)]),
)
@example("ring", 3, 1_900_003, SLOW_NETWORK)  # in pieces
@example("ps", 2, 1_900_003, SLOW_ADDITIONS)
@example("ps_worker", 3, 2 * 2**18, SLOW_ADDITIONS)
@example("ps_sharded", 2, 1_900_003, BURSTS)
def test_the_clocks_of_many_ranks_are_those_of_the_engine(algorithm, workers, size, costs):
    many = simulated_seconds(algorithm, workers, 4 * size, Costs(*costs))
    engine = engine_seconds(algorithm, workers, size, Costs(*costs))
    np.testing.assert_allclose(many, engine, rtol=1e-12, atol=1e-18)


@pytest.mark.parametrize("n", [2, 3, 4, 8, 60, 256])
def test_closed_forms(n):
    """For tensors that travel in one piece, evenly divided."""
    k = 4 * (61_440 // n * n)
    alpha, beta, gamma, _ = SLOW_NETWORK
    even = 2 * (n - 1) * (alpha + k / n * beta) + (n - 1) * k / n * gamma
    expected = {
        "ring": even,
        "ps_sharded": even,
        "ps": 2 * (alpha + n * k * beta) + k * gamma,
        "ps_worker": 2 * (alpha + (n - 1) * k * beta) + k * gamma,
    }
    for algorithm, seconds in expected.items():
        simulated = simulated_seconds(algorithm, n, k, SLOW_NETWORK)
        assert simulated.max() == pytest.approx(seconds, rel=1e-12), algorithm


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_one_worker_and_empty_tensors(algorithm):
    assert not simulated_seconds(algorithm, 5, 0, SLOW_NETWORK).any()
    alone = simulated_seconds(algorithm, 1, 4096, SLOW_NETWORK)
    assert alone.any() == (algorithm == "ps")


@pytest.mark.parametrize("n", [2, 8, 64])
def test_mpi_allreduce_of_powers_of_two(n):
    alpha, beta, gamma, _ = SLOW_NETWORK
    steps, short, long = n.bit_length() - 1, 1024, 2**20
    doubling = steps * (alpha + short * (beta + gamma))
    assert simulated_seconds("mpi", n, short, SLOW_NETWORK) == pytest.approx(doubling)
    halving = 2 * steps * alpha + (n - 1) / n * long * (2 * beta + gamma)
    assert simulated_seconds("mpi", n, long, SLOW_NETWORK) == pytest.approx(halving)


@pytest.mark.parametrize("n", [9, 12, 15])
def test_mpi_allreduce_folds_other_numbers_into_powers_of_two(n):
    """The tensors of ranks beyond 8 go to neighbours before, and the sum comes back after."""
    alpha, beta, gamma, _ = SLOW_NETWORK
    size = 2**20
    folded = 2 * (alpha + size * beta) + size * gamma
    halving = 6 * alpha + 7 / 8 * size * (2 * beta + gamma)
    seconds = simulated_seconds("mpi", n, size, SLOW_NETWORK)
    last = seconds[: 2 * (n - 8) : 2]  # ranks that gave their tensors away
    assert seconds.max() == last.max() == pytest.approx(folded + halving)


def test_a_message_takes_a_port_at_either_end():
    """Two messages of 1 s leave one after the other; two that meet at a port queue there."""

    def send_two(comm):
        rank = comm.Get_rank()
        buffer = np.zeros(100, np.uint8)
        if rank < 2:
            requests = [comm.Isend(buffer, 2, tag) for tag in (0, 1)]
        else:
            places = [(source, tag) for tag in (0, 1) for source in (0, 1)]
            requests = [comm.Irecv(buffer.copy(), *place) for place in places]
        seen = []
        for request in requests:
            assert request.Test()
            seen.append(comm.seconds)
        return seen

    results, seconds = run_simulated(3, send_two, 0.5, 0.01)
    assert results == [[1, 2], [1, 2], [1.5, 2.5, 3.5, 4.5]]
    assert seconds.tolist() == [2, 2, 4.5]


def test_a_burst_passes_at_once_and_the_rest_at_the_rate():
    def send(comm):
        seen = []
        for length in (300, 100):
            buffer = np.zeros(length, np.uint8)
            if comm.Get_rank():
                comm.Irecv(buffer, 0, 0).Test()
            else:
                comm.Isend(buffer, 1, 0).Test()
            seen.append(comm.seconds)
        return seen

    (sent, received), _ = run_simulated(2, send, 0.5, 0.01, burst=120.0)
    assert sent == pytest.approx([1.8, 2.8])  # 180 bytes wait, then all 100: the bucket is empty
    assert received == pytest.approx([2.3, 3.3])


def lost(comm):
    if comm.Get_rank() == 2:
        raise KeyError("lost")
    ring_allreduce(torch.ones(10), comm)


def wait_for_right(comm):
    right = (comm.Get_rank() + 1) % 3
    comm.Irecv(np.zeros(4, np.uint8), right, 7).Test()


def leave_early(comm):
    if comm.Get_rank():
        ring_allreduce(torch.ones(10), comm)


def mismatch(comm):
    if comm.Get_rank():
        comm.Irecv(np.zeros(8, np.uint8), 0, 0).Test()
    else:
        comm.Isend(np.zeros(4, np.uint8), 1, 0)


@pytest.mark.parametrize(
    ("ranks", "function", "error", "message"),
    [
        (4, lost, KeyError, "lost"),  # and the others are woken
        (3, wait_for_right, RuntimeError, "rank 0 waits for rank 1, tag 7; rank 1 waits"),
        (3, leave_early, RuntimeError, "nothing is on its way"),
        (2, mismatch, RuntimeError, "room for 8 bytes from rank 0, tag 0, which sent 4"),
    ],
)
def test_ranks_that_go_wrong_are_named(ranks, function, error, message):
    with pytest.raises(error, match=message):
        run_simulated(ranks, function, 1e-4, 1e-8)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(("star", 2, 4), "star"), (("ring", 0, 4), "0 workers"), (("ring", 2, 5), "5 bytes")],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        simulated_seconds(*arguments, SLOW_NETWORK)
