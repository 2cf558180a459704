"""The settings: what is refused and how the learning rate falls."""

import pytest

from actionspan.temporal.settings import TemporalSettings


@pytest.mark.parametrize(
    ("field", "value", "allowed"),
    [
        ("hidden", 0, "from 1 to 65536"),
        ("epochs", 0, "at least 1"),
        ("batch_size", -1, "at least 1"),
        ("learning_rate", 0.0, "above 0"),
        ("learning_rate", float("nan"), "above 0"),
        ("output_scale", float("inf"), "above 0"),
        ("boundary_ratio", -0.1, "at least 0"),
        ("weight_decay", -1.0, "at least 0"),
        ("fusion_weight", 1.5, "from 0 to 1"),
        ("dropout", 1.0, "below 1"),
        ("decay_factor", 0.0, "above 0"),
        ("decay_epochs", "7,14", "write a list: [7, 14]"),
        ("decay_epochs", [14, 7], "rising numbers, each at least 1"),
        ("decay_epochs", [7, 7], "rising numbers"),
        ("decay_epochs", [0], "each at least 1"),
        ("labels", "tem", "bsn, mtn"),
        ("keep", "all", "one of best, average, last"),
        ("seed", -1, "from 0"),
    ],
)
def test_a_value_out_of_range_is_named(field, value, allowed):
    with pytest.raises(ValueError, match=field) as error:
        TemporalSettings(**{field: value})
    assert allowed in str(error.value)
    assert str(value) in str(error.value)


def test_the_learning_rate_falls_after_the_named_epochs():
    settings = TemporalSettings(decay_epochs=(7, 14))
    rates = [settings.learning_rate_in(epoch) for epoch in (1, 7, 8, 14, 15, 20)]
    assert rates == pytest.approx([1e-3, 1e-3, 1e-4, 1e-4, 1e-5, 1e-5])
    assert TemporalSettings(decay_epochs=()).learning_rate_in(100) == 1e-3
