"""The learning rate of each epoch."""

import pytest
import torch

from actionspan.training.settings import rate_after, rate_every


def test_the_rate_falls_after_given_epochs():
    rates = [rate_after(0.5, 0.1, (2, 3), epoch) for epoch in range(1, 6)]
    assert rates == [0.5, 0.5, 0.5 * 0.1, 0.5 * 0.1**2, 0.5 * 0.1**2]


@pytest.mark.parametrize("every", [1, 2, 10])
def test_the_rate_falls_to_the_bit_as_torch_lets_it(every):
    optimiser = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.01)
    torchs = torch.optim.lr_scheduler.StepLR(optimiser, every, gamma=0.1)
    for epoch in range(1, 25):
        assert rate_every(0.01, 0.1, every, epoch) == optimiser.param_groups[0]["lr"]
        optimiser.step()
        torchs.step()
