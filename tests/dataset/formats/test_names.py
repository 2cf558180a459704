from actionspan.dataset.sharding import other_names


def test_the_v_of_activitynet_may_be_there_or_not():
    assert other_names("abc") == ["v_abc"]
    assert other_names("v_abc") == ["v_v_abc", "abc"]  # v_abc may be the bare id of v_v_abc
    assert other_names("") == ["v_"]


def test_the_relation_holds_both_ways():
    for name in ("abc", "v_abc", "v_v_abc", "vabc", "v_"):
        assert all(name in other_names(other) for other in other_names(name))
