"""Block bounds and schedules: everyone meets everyone, sums are whole, the printed form is not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actionspan.parallel.parameter_server import pull_rounds, push_rounds
from actionspan.parallel.ring import Round, block_bounds, gather_rounds, scatter_rounds

SCHEDULES = (scatter_rounds, gather_rounds, push_rounds, pull_rounds)
RANKS = st.integers(1, 40)


@given(st.integers(0, 10**9), RANKS)
def test_blocks_tile_the_tensor_evenly(length, blocks):
    expected = [int(length * number / blocks) for number in range(blocks + 1)]
    assert block_bounds(length, blocks) == expected


@given(st.sampled_from(SCHEDULES), RANKS)
def test_sends_and_receives_match_in_every_round(schedule, size):
    every = [list(schedule(rank, size)) for rank in range(size)]
    assert {len(rounds) for rounds in every} == {size - 1}
    for number in range(size - 1):
        sent = {(rank, rounds[number].to, rounds[number].send) for rank, rounds in enumerate(every)}
        received = {
            (rounds[number].source, rank, rounds[number].receive)
            for rank, rounds in enumerate(every)
        }
        assert sent == received
        assert all(source != to for source, to, _ in sent)
        assert len({to for _, to, _ in sent}) == size  # one message to each rank at a time


def run_ring(size, gather):
    """Return what each rank holds of each block: a set of contributions, one of each rank."""
    held = [[{rank} for _ in range(size)] for rank in range(size)]
    for schedule, add in ((scatter_rounds, True), (gather, False)):
        for moves in zip(*(schedule(rank, size) for rank in range(size)), strict=True):
            messages = {(rank, move.to): held[rank][move.send] for rank, move in enumerate(moves)}
            for rank, move in enumerate(moves):
                received = messages[move.source, rank]
                if add:
                    assert not held[rank][move.receive] & received, "added twice"
                    held[rank][move.receive] = held[rank][move.receive] | received
                else:
                    held[rank][move.receive] = received
    return held


@given(RANKS)
def test_the_ring_gives_every_rank_every_sum(size):
    everyone = set(range(size))
    assert all(block == everyone for rank in run_ring(size, gather_rounds) for block in rank)


def printed_gather_rounds(rank, size):
    """Yield the gather as papers 000 and 001 print it: blocks n - i - 1 out and n - i - 2 in."""
    for i in range(size - 1):
        send, receive = (rank - i - 1) % size, (rank - i - 2) % size
        yield Round(send, (rank + 1) % size, receive, (rank - 1) % size)


@pytest.mark.parametrize("size", range(2, 9))
def test_the_printed_gather_is_right_for_two_ranks_only(size):
    held = run_ring(size, printed_gather_rounds)
    assert all(block == {*range(size)} for rank in held for block in rank) == (size == 2)


@given(RANKS)
def test_the_sharded_server_collects_all_parts_of_a_block_and_hands_it_to_all(size):
    for rank in range(size):
        pushed = list(push_rounds(rank, size))
        assert {move.source for move in pushed} == set(range(size)) - {rank}
        assert {move.receive for move in pushed} <= {rank}
        assert all(move.send == move.to for move in pushed)
        pulled = list(pull_rounds(rank, size))
        assert {move.receive for move in pulled} == set(range(size)) - {rank}
        assert all(move.receive == move.source for move in pulled)
        assert {move.send for move in pulled} <= {rank}
