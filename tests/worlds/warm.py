"""A Python that starts at once: a fork of a server that has imported torch and Snakemake.

Most processes of the tests would spend most of their time on these imports. `python` below
replaces the interpreter: it sends its arguments, environment, folder and open files to the server,
forwards signals, and exits with the status of the forked process. Tests of how processes start and
end use the real interpreter, `sys.executable`.
"""

import atexit
import contextlib
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Sequence
from multiprocessing.spawn import get_executable
from pathlib import Path
from typing import NoReturn

PRELOADED = (
    *("av", "cv2", "h5py", "jsonschema", "numpy", "scipy.optimize", "torch", "torch._dynamo"),
    *("matplotlib.backends.backend_agg", "matplotlib.backends.backend_svg", "matplotlib.figure"),
    *("snakemake.cli", "snakemake.report.html_reporter"),
)
FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_LONGEST = 100  # characters of a socket's address
# without site and the environment: a tenth of the start of an interpreter
CLIENT = """#!{python} -IS
import fcntl, json, os, signal, socket, subprocess, sys, time
words = sys.argv[1:]
while words[:1] == ["-B"] or words[:1] == ["-u"]:
    del words[0]
if not words or (words[0][0] == "-" and words[0] not in ("-c", "-m")):
    os.execv({python!r}, [{python!r}, *sys.argv[1:]])
with open({folder!r} + "/lock", "w") as lock:
    fcntl.flock(lock, fcntl.LOCK_EX)
    if not os.path.exists({address!r}):
        with open({folder!r} + "/log", "w") as log:
            subprocess.Popen(
                {server!r}, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/",
                env={environment!r}, start_new_session=True,
            )
        while not os.path.exists({address!r}):
            time.sleep(0.05)
with socket.socket(socket.AF_UNIX) as server:
    open_files = []
    for number in map(int, os.listdir("/proc/self/fd")):
        try:
            os.fstat(number)
        except OSError:
            continue
        if number != server.fileno():
            open_files.append(number)
    server.connect({address!r})
    blocked = list(map(int, signal.pthread_sigmask(signal.SIG_BLOCK, [])))
    ignored = [each for each in {forwarded} if signal.getsignal(each) == signal.SIG_IGN]
    given = [words, dict(os.environ), os.getcwd(), open_files, blocked, ignored]
    text = json.dumps(given).encode()
    socket.send_fds(server, [len(text).to_bytes(8, "big")], open_files)
    server.sendall(text)
    for number in open_files:  # only the child holds them
        os.close(number)
    answers = server.makefile()
    child = int(answers.readline())
    for each in {forwarded}:
        if each not in ignored:
            signal.signal(each, lambda number, _: os.kill(child, number))
    status = int(answers.readline())
if status < 0:
    if -status != signal.SIGKILL:
        signal.signal(-status, signal.SIG_DFL)
    os.kill(os.getpid(), -status)
os._exit(status)
"""


def python() -> str:
    """Return the interpreter for processes of this test: this `python`, or with `cold` the real."""
    return os.fsdecode(get_executable())


def warm_python(folder: Path, owner: int) -> Path:
    """Return `python` in `folder`; its server starts with the first use, and ends with `owner`.

    Where the system cannot do that it is the real interpreter.
    """
    address = str(folder / "socket")
    if sys.platform != "linux" or len(address) > _LONGEST:
        return Path(sys.executable)
    text = CLIENT.format(
        python=sys.executable,
        address=address,
        folder=str(folder),
        server=[sys.executable, __file__, address, str(owner)],
        forwarded=tuple(map(int, FORWARDED)),
        environment={**os.environ, "OMP_NUM_THREADS": "1"},  # not what a test has added
    )
    script = folder / f"new-{os.getpid()}"
    script.write_text(text)
    script.chmod(0o755)
    return script.rename(folder / "python")


def _serve(address: str, owner: int) -> Sequence[str]:
    """Return the arguments of a request, in the process forked for it."""
    for name in PRELOADED:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    gc.freeze()  # no fork searches what is shared
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address + ".new")
    listener.listen(64)
    os.rename(address + ".new", address)  # noqa: PTH104
    ended = os.pidfd_open(owner)
    while True:
        if ended in select.select([listener.fileno(), ended], [], [])[0]:
            os._exit(0)
        connection, _ = listener.accept()
        if os.fork():
            connection.close()
            continue
        listener.close()
        os.close(ended)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        length, files, *_ = socket.recv_fds(connection, 8, 250)
        text = b""
        while len(text) < int.from_bytes(length, "big"):
            text += connection.recv(1 << 20)
        words, environment, folder, numbers, blocked, ignored = json.loads(text)
        child = os.fork()
        if child:
            for each in files:
                os.close(each)
            _watch(connection, child)
        connection.close()
        _take_over(files, numbers)
        os.environ.clear()
        os.environ.update(environment)
        os.chdir(folder)
        for each in FORWARDED:
            signal.signal(each, signal.SIG_IGN if each in ignored else signal.SIG_DFL)
        if signal.SIGINT not in ignored:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        sys.executable = str(Path(address).with_name("python"))
        return list(words)


def _watch(connection: socket.socket, child: int) -> None:
    """Report how the child ended; kill it when its client is gone."""
    ended = os.pidfd_open(child)
    null = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(null, number)
    connection.sendall(b"%d\n" % child)
    if connection.fileno() in select.select([connection.fileno(), ended], [], [])[0]:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    with contextlib.suppress(OSError):
        connection.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))
    os._exit(0)


def _take_over(files: Sequence[int], numbers: Sequence[int]) -> None:
    """Give open files the numbers that they have in the client."""
    import fcntl

    high = [fcntl.fcntl(each, fcntl.F_DUPFD, 300) for each in files]
    for each in files:
        os.close(each)
    for each, number in zip(high, numbers, strict=True):
        os.dup2(each, number)
        os.close(each)


def _run(words: Sequence[str]) -> None:
    """Do what `python ARGUMENTS` does."""
    first, *others = words
    path = [each for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each]
    place = str(Path(first).resolve().parent) if not first.startswith("-") else os.getcwd()  # noqa: PTH109
    sys.path[:0] = [place, *path]
    sys.argv, sys.orig_argv = [first, *others], [sys.executable, *words]
    for each in path:  # as an interpreter does at its start
        if (custom := Path(each, "sitecustomize.py")).is_file():
            runpy.run_path(str(custom))
    if first == "-c":
        sys.argv[1:] = others[1:]
        exec(compile(others[0], "<string>", "exec"), {"__name__": "__main__"})
    elif first == "-m":
        sys.argv = others
        runpy.run_module(others[0], run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(first, run_name="__main__")


def _end_of(words: Sequence[str]) -> int:
    """Run and return the exit status, as the interpreter gives it."""
    try:
        _run(words)
    except SystemExit as end:
        if isinstance(end.code, int | None):
            return end.code or 0
        print(end.code, file=sys.stderr)
        return 1
    except BaseException as error:
        ours = error.__traceback__
        while ours and ours.tb_frame.f_code.co_filename in (__file__, runpy.__file__):
            ours = ours.tb_next
        traceback.print_exception(error.with_traceback(ours))
        if isinstance(error, KeyboardInterrupt):
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGINT)
        return 1
    return 0


def _leave(status: int) -> NoReturn:
    """Exit without tearing the interpreter down, which would take longer than the rest.

    With MPI the interpreter exits as usual, since mpi4py finalizes or aborts there.
    """
    if "mpi4py.MPI" in sys.modules:
        gc.freeze()
        sys.exit(status)
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(status)


if __name__ == "__main__":
    _address, _owner = sys.argv[1:]
    del sys.path[0]
    _leave(_end_of(_serve(_address, int(_owner))))
