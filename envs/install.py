"""Install the locked packages, with the build of PyTorch that this machine can use.

python envs/install.py --torch auto|cpu|cuda; uv must be in the environment. Standard library only.
"""

import argparse
import re
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from shutil import which

LOCK = Path(__file__).with_name("requirements.txt")
# What CUDA builds of PyTorch bring along, and CPU builds do not ask for.
CUDA = re.compile(r"(nvidia|cuda|triton)[-=]")
BUILDS = ("auto", "cpu", "cuda")


def without_cuda(lock: str) -> str:
    """Return the lines of a lock without the packages of CUDA."""
    return "".join(line for line in lock.splitlines(keepends=True) if not CUDA.match(line))


def choose(wanted: str, platform: str, has_gpu: bool) -> str:
    """Return the build of PyTorch to install: cpu, cuda, or default where there is only one."""
    if not platform.startswith("linux"):
        return "default"  # the package index has CPU builds for these
    if wanted == "auto":
        return "cuda" if has_gpu else "cpu"
    return wanted


def main() -> int:
    """Install and return an exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--torch", choices=BUILDS, default="auto")
    wanted = parser.parse_args().torch
    has_gpu = which("nvidia-smi") is not None or Path("/dev/nvidia0").exists()
    build = choose(wanted, sys.platform, has_gpu)
    if build == "cpu":
        with tempfile.TemporaryDirectory() as folder:
            lean = Path(folder) / "requirements.txt"
            lean.write_text(without_cuda(LOCK.read_text(encoding="utf-8")), encoding="utf-8")
            done = _install(lean, "--torch-backend", "cpu", quiet=wanted == "auto")
        if done == 0 or wanted == "cpu":
            return done
        print(
            "PyTorch's own package index, which has its CPU build, cannot be reached: installing "
            "the build with CUDA, which takes 4 GB more",
            file=sys.stderr,
        )
    return _install(LOCK)


def _install(requirements: Path, *flags: str, quiet: bool = False) -> int:
    uv = Path(sysconfig.get_path("scripts")) / "uv"
    words = [uv, "pip", "install", "--quiet", "--compile-bytecode", "--python", sys.executable]
    shown = subprocess.DEVNULL if quiet else None
    return subprocess.run([*words, *flags, "--requirement", requirements], stderr=shown).returncode


if __name__ == "__main__":
    sys.exit(main())
