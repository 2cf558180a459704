"""`propose` needs neither MPI nor Snakemake, nor what Windows lacks."""

import subprocess
import sys

import pytest

from video.numbered import encode

PREPARED = """
import os, signal, sys
from multiprocessing.popen_fork import Popen
Popen.kill = Popen.terminate  # as on Windows, which needs no signal for either
for name in "mpi4py snakemake yaml jsonschema argcomplete fcntl resource pwd".split():
    sys.modules[name] = None
for name in ("SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGKILL", "SIGSTOP"):
    delattr(signal, name)
for name in ("fork", "killpg", "setsid", "getuid", "sched_getaffinity", "O_DIRECTORY"):
    if hasattr(os, name):
        delattr(os, name)
"""
# what each may import beside what those before it have imported
HEAVY = (
    ("actionspan", "numpy torch cv2 matplotlib h5py"),
    # the process that waits for results, and the one that opens the first video
    ("actionspan.propose.working", "torch cv2 av decord h5py scipy matplotlib pandas"),
    ("actionspan.propose.proposed", "torch scipy matplotlib pandas"),
    (
        "actionspan.propose.proposer",
        "scipy torchvision matplotlib pandas timm transformers openvino",
    ),
    ("actionspan.live.run", ""),
)


def lean(code: str, *words: object) -> subprocess.CompletedProcess:
    """Run code in a Python that has only what a plain installation on Windows has."""
    command = [sys.executable, "-c", PREPARED + code, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True)


def test_a_call_imports_what_it_needs_and_nothing_that_no_frame_needs(tmp_path):
    """And nothing that Windows lacks."""
    code = f"""
import importlib
for module, heavy in {HEAVY}:
    importlib.import_module(module)
    print(module, [name for name in heavy.split() if name in sys.modules])
from actionspan.cli import main
sys.exit(main())
"""
    video, out = encode(tmp_path / "video.mp4", 100), tmp_path / "out"
    done = lean(code, "propose", video, "--model", "none", "--out", out)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[: len(HEAVY)] == [f"{module} []" for module, _ in HEAVY]
    assert (out / "video.vtt").is_file()


@pytest.mark.full
def test_a_trained_model_needs_no_compiler(tmp_path):
    """That of torch takes 145 MB and two seconds, and nothing here calls it."""
    video = encode(tmp_path / "video.mp4", 100)
    code = (
        "from actionspan import load_model\n"
        "load_model('demo').propose(sys.argv[1])\n"
        "print([name for name in ('torch._dynamo', 'torch._inductor') if name in sys.modules])"
    )
    done = lean(code, video)
    assert done.stdout.strip() == "[]", done.stderr


@pytest.mark.full
def test_memory_does_not_grow_with_the_video(tmp_path):
    """All frames of the longer one would take 370 MB."""
    code = (
        "import resource, sys\n"
        "from actionspan.propose import MotionProposer\n"
        "MotionProposer().propose(sys.argv[1])\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    peaks = []
    for frames in (100, 1700):
        video = encode(tmp_path / f"{frames}.mp4", frames, size=(240, 320), key_every=25)
        words = [sys.executable, "-c", code, str(video)]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        peaks.append(int(done.stdout) / 1024)
    assert peaks[1] - peaks[0] < 120
