"""Calls of the tests' own functions in a process of their own."""

import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

CALL = "import pickle, sys; f, words, named = pickle.load(sys.stdin.buffer); f(*words, **named)"


def needs_own_process(codec: str) -> bool:
    """Return whether PyAV may fail to encode here: H.265, once decord's FFmpeg is loaded too."""
    return codec == "libx265" and "decord" in sys.modules


def in_own_process(call: Callable[..., Any], *words: Any, **named: Any) -> None:
    """Call a function of a module of the tests."""
    path = os.pathsep.join(filter(None, (str(Path(__file__).parent), os.environ.get("PYTHONPATH"))))
    given = pickle.dumps((call, words, named))
    environment = {**os.environ, "PYTHONPATH": path}
    subprocess.run([sys.executable, "-c", CALL], input=given, env=environment, check=True)
