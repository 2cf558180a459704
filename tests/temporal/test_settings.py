"""How the learning rate falls by the settings; tests/test_settings.py has what is refused."""

import pytest

from actionspan.temporal.settings import TemporalSettings


def test_the_learning_rate_falls_after_the_named_epochs():
    settings = TemporalSettings(decay_epochs=(7, 14))
    rates = [settings.learning_rate_in(epoch) for epoch in (1, 7, 8, 14, 15, 20)]
    assert rates == pytest.approx([1e-3, 1e-3, 1e-4, 1e-4, 1e-5, 1e-5])
    assert TemporalSettings(decay_epochs=()).learning_rate_in(100) == 1e-3
