import pytest

from actionspan_papers.sbp.published import (
    FROZEN,
    FULL,
    HEADS_LIKE,
    LOCALISATION,
    MOST_LOST,
    ONLINE,
    QUARTER,
)


def test_the_mean_of_table_5_is_that_of_its_cells():
    for row in LOCALISATION.values():
        assert sum(row.precision) / 5 == pytest.approx(row.mean, abs=0.006)


def test_each_head_has_the_same_trainings_in_table_4():
    trainings = {
        name: {way for method, way in ONLINE if method == name} for name in ("TRN", "LSTR")
    }
    assert trainings["TRN"] == trainings["LSTR"]
    assert set(HEADS_LIKE.values()) == set(trainings)


def test_what_the_text_says_of_the_tables():
    # "freezing the backbone leads to 1.5 % and 2.4 % mAP drop for TRN and LSTR"
    for name, drop in (("TRN", 1.5), ("LSTR", 2.4)):
        assert ONLINE[name, FULL].precision - ONLINE[name, FROZEN].precision == pytest.approx(drop)
    # "freezing the backbone leads to 3.3 % drop in average mAP"
    assert LOCALISATION[FULL].mean - LOCALISATION[FROZEN].mean == pytest.approx(3.33)
    # "less than 1 %" does not hold of localisation at a quarter
    assert LOCALISATION[FULL].mean - LOCALISATION[QUARTER].mean > MOST_LOST
