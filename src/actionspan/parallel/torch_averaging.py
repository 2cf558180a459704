"""Averaging by torch's PeriodicModelAverager, as an alternative to AAVG."""

import warnings

import torch

from actionspan.parallel.averaging import trained
from actionspan.parallel.collective import TorchAllreduce
from actionspan.parallel.model_averaging import AveragingReplica


class PeriodicAveraging(AveragingReplica):
    """Ranks whose parameters torch averages, over gloo.

    torch leaves optimiser state and buffers to each rank, whatever `average_state` says. It skips
    parameters without a gradient, and fails where only some ranks have none; so during the average
    all have a gradient, of zero where there was none.
    """

    name = "periodic"

    def _start(self) -> None:
        super()._start()
        self.whole_state = False
        self._group = TorchAllreduce(self.comm, "gloo", self.settings.stall_seconds)
        from torch.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager

        with warnings.catch_warnings():
            # K is counted here, since `synchronise` averages too; torch averages at every call, and
            # warns that this costs as much as averaging gradients
            warnings.simplefilter("ignore")
            self._averager = PeriodicModelAverager(period=1)

    def close(self) -> None:
        """Stop watching and tear the process group down."""
        super().close()
        self._group.close()

    def _exchange(self) -> None:
        parameters = trained(self.optimiser)
        without = [parameter for parameter in parameters if parameter.grad is None]
        for parameter in without:
            parameter.grad = torch.zeros_like(parameter)
        with self._group.exchanging():
            self._averager.average_parameters(parameters)
        for parameter in without:
            parameter.grad = None
