"""What the backend for CUDA asks of torch.cuda, where there is no GPU: the calls, by a recorder."""

from unittest.mock import MagicMock, call

import pytest
import torch

from actionspan.streaming import device
from actionspan.streaming.device import CudaBackend, lanes_of


@pytest.fixture
def cuda(monkeypatch):
    recorder = MagicMock()
    monkeypatch.setattr(device, "_cuda", recorder)
    return recorder


def test_a_copy_between_devices_has_both_streams_current_and_runs_on_the_senders(cuda):
    """The inner context says which device and stream are current; torch copies on the source's."""
    target, send, receive = MagicMock(), MagicMock(), MagicMock()
    source = object()
    CudaBackend().copy_across(target, source, send, receive)
    assert cuda.stream.call_args_list == [call(receive), call(send)]
    target.copy_.assert_called_once_with(source, non_blocking=True)


def test_graphs_of_a_stage_share_a_pool_and_are_captured_on_their_stream_with_all_idle(cuda):
    stream, done, backend = MagicMock(), [], CudaBackend()
    for index in (0, 1):
        backend.stream(torch.device("cuda", index))
    graphs = backend.capture(stream, [lambda: done.append("even"), lambda: done.append("odd")])
    assert done == ["even", "odd"]
    assert len(graphs) == 2
    pool = cuda.graph_pool_handle.return_value
    for each in cuda.graph.call_args_list:
        assert each.kwargs == {"pool": pool, "stream": stream, "capture_error_mode": "thread_local"}
    names = [name for name, _, _ in cuda.mock_calls]
    assert names.count("synchronize") == 2  # one for each device
    assert max(i for i, name in enumerate(names) if name == "synchronize") < names.index("graph")


def test_only_devices_that_stages_use_are_waited_for(cuda, monkeypatch):
    """Waiting for a device makes a context there: hundreds of megabytes, on all that are seen."""
    cuda.device_count.return_value = 4
    backend = CudaBackend()
    lanes_of(backend, 3, ["cuda:1", "cuda:1", "cuda:3"])
    backend.synchronize()
    waited = sorted(each.args[0].index for each in cuda.synchronize.call_args_list)
    assert waited == [1, 3]
    # fixed memory is given out when its device is idle
    monkeypatch.setattr(torch, "empty_like", lambda like, device: (like, device))
    gpu = torch.device("cuda", 1)
    assert CudaBackend().static("like", gpu) == ("like", gpu)
    assert cuda.synchronize.call_args == call(gpu)


def test_events_and_streams(cuda):
    backend, stream, event, tensor = CudaBackend(), MagicMock(), MagicMock(), MagicMock()
    backend.record(stream)
    backend.wait(stream, event)
    backend.hold(tensor, stream)
    assert cuda.Event.call_args == call()  # without a time
    stream.record_event.assert_called_once_with(cuda.Event.return_value)
    stream.wait_event.assert_called_once_with(event)
    tensor.record_stream.assert_called_once_with(stream)
    backend.mark(stream)
    assert cuda.Event.call_args == call(enable_timing=True)
    event.elapsed_time.return_value = 2000.0
    assert backend.seconds(event, event) == 2.0
    event.query.return_value = False
    assert backend.done(event) is False


def test_neighbours_share_a_device(cuda):
    for gpus, expected in (
        (1, [0, 0, 0]), (2, [0, 0, 1]), (3, [0, 1, 2]), (8, [0, 1]), (2, [0, 0, 1, 1]),
    ):  # fmt: skip
        cuda.device_count.return_value = gpus
        lanes = lanes_of(CudaBackend(), len(expected), None)
        assert [lane.device.index for lane in lanes] == expected
    assert cuda.Stream.call_count == 3 * (3 + 3 + 3 + 2 + 4)
