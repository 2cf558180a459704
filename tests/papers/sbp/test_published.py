"""The printed numbers of tables 1 to 3, spot by spot."""

from actionspan_papers.sbp.published import ACCURACY, CHECKERBOARD, COSTS, FRAMES, RECOGNITION


def test_tables_are_as_printed():
    assert RECOGNITION["Swin-T", "frame dropout"] == (76.3, 92.4, 38.9, 79.9, 2.9)
    assert RECOGNITION["Swin-B", "SBP"] == (81.9, 95.2, 47.3, 83.6, 8.6)
    assert COSTS["Swin-T", "SBP + checkpointing"] == (3.2, 0.26)
    assert COSTS["Swin-B", "checkpointing"] == (8.0, 0.57)
    assert ACCURACY[CHECKERBOARD][:4] == (78.3, 93.0, 45.4, 81.3)
    assert ACCURACY[FRAMES][:4] == (78.2, 93.1, 45.2, 81.7)


def test_what_two_tables_print_is_the_same():
    for network in ("Swin-T", "Swin-B"):
        for way in ("end-to-end", "SBP"):
            assert RECOGNITION[network, way].gigabytes == COSTS[network, way].gigabytes
