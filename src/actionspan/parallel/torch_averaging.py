"""Averaging by torch's PeriodicModelAverager, as a peer of AAVG."""

import warnings

import torch

from actionspan.parallel.averaging import trained
from actionspan.parallel.collective import TorchAllreduce
from actionspan.parallel.model_averaging import AveragingReplica


class PeriodicAveraging(AveragingReplica):
    """Ranks whose parameters torch averages, over gloo.

    torch leaves optimiser state and buffers to each rank, whatever `average_state` says. It passes
    over parameters without a gradient, which is an error of its own where only some ranks have
    none; so all get one, of zero where there was none, for the time of the average.
    """

    name = "periodic"

    def _start(self) -> None:
        super()._start()
        self.whole_state = False
        # the watchdog, which knows whom all wait for, is to be the first to end the job
        self._group = TorchAllreduce(self.comm, "gloo", 2 * self.settings.stall_seconds + 60)
        from torch.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager

        with warnings.catch_warnings():
            # K is counted here, since `synchronise` averages too; torch averages at every call, and
            # warns that this would be as costly as to average gradients
            warnings.simplefilter("ignore")
            self._averager = PeriodicModelAverager(period=1)

    def close(self) -> None:
        """Stop watching and tear the process group down."""
        super().close()
        self._group.close()

    def _exchange(self) -> None:
        parameters = trained(self.optimiser)
        without = [one for one in parameters if one.grad is None]
        for one in without:
            one.grad = torch.zeros_like(one)
        self._averager.average_parameters(parameters)
        for one in without:
            one.grad = None
