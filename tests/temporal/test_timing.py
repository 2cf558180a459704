"""Where the seconds of a run went."""

from actionspan.temporal.training import whole_timing


def test_a_run_has_the_seconds_of_the_worker_that_computed_longest():
    def rank(role, t1, t2, t3):
        parts = {"seconds": t1 + t2 + t3}
        return {"role": role, "t1": t1, "t2": t2, "t3": t3, "parts": parts}

    whole = whole_timing(
        [rank("server", 1, 30, 1), rank("worker", 8, 3, 1), rank("worker", 10, 1, 2)]
    )
    assert [whole[f"{part}_seconds"] for part in ("t1", "t2", "t3")] == [10, 1, 2]
    assert whole["seconds"] == 13
