"""A cluster on one machine: its hosts are network namespaces, joined by links of a set rate.

    with Cluster(hosts=4, mbit=100) as cluster:
        job = cluster.run(["-m", "mpi4py", "script.py"], ranks=4, must_send=2**20)

Every host is a namespace with one veth link to a bridge; the bridge lives in one more namespace,
from which mpiexec starts the ranks. Both ends of every link are rate-limited, so that a host sends
and receives at once, each at the full rate, like a host on an Ethernet switch. A link that was idle
carries its first 32 KiB (the burst) at once: short messages are faster than on a wire of that rate,
and a link makes up for idle moments of 32 KiB at most.

`reason_missing` says why no such cluster can be made here. Nothing is left behind: not after an
exception, nor Ctrl-C, nor SIGTERM; what SIGKILL leaves, the next cluster removes.
"""

import atexit
import contextlib
import functools
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Self

from actionspan.parallel.launch import POLITE

NAMESPACES = Path("/run/netns")
PREFIX = "actionspan"
SUBNET = "10.77.0"
SWITCH_ADDRESS = f"{SUBNET}.254"
MOST_HOSTS = 64

# The links and nothing else: MPICH would otherwise see one machine, and share memory. There are
# more ranks than cores, so a rank that waits gives way instead of polling.
MPI_ENVIRONMENT = {
    "MPIR_CVAR_CH4_NETMOD": "ofi",
    "FI_PROVIDER": "tcp",
    "FI_TCP_IFACE": "eth0",
    "MPIR_CVAR_NOLOCAL": "1",
    **POLITE,
    "OMP_NUM_THREADS": "1",
}

# What mpiexec calls in place of ssh: `AGENT -x ADDRESS COMMAND…`, the command quoted for a shell.
AGENT = """#!/bin/sh
while [ "${{1#-}}" != "$1" ]; do shift; done
host={name}-${{1##*.}}
shift
exec ip netns exec "$host" sh -c "$*"
"""

_numbers = itertools.count()


class WireError(RuntimeError):
    """Fewer bytes crossed the links than the job must have sent."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """What a job printed, and what it sent."""

    output: str
    seconds: float
    sent: list[int]
    """Bytes that left each host over its link, headers included."""


class Cluster:
    """Hosts that are namespaces, from `with` to the end of its block.

    Args:
        hosts: how many.
        mbit: rate of each link in each direction, in Mbit/s.
        burst_kib: what a link that was idle may carry at once, in KiB, before the rate holds.
    """

    def __init__(self, *, hosts: int, mbit: float, burst_kib: int = 32) -> None:
        if not 1 <= hosts <= MOST_HOSTS:
            raise ValueError(f"hosts is {hosts}, it must be from 1 to {MOST_HOSTS}")
        if mbit <= 0:
            raise ValueError(f"mbit is {mbit}, it must be above 0")
        self.hosts, self.mbit, self.burst_kib = hosts, mbit, burst_kib
        self.name = f"{PREFIX}-{os.getpid()}-{next(_numbers)}"
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._handlers: dict[int, Any] = {}

    def __enter__(self) -> Self:
        """Make the hosts, the switch and the links."""
        remove_abandoned()
        # A second net below __exit__, for a signal that comes between the two.
        atexit.register(self.remove)
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGHUP):
                self._handlers[number] = signal.signal(number, _leave)
        try:
            self._make()
        except BaseException:
            self.remove()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def run(self, arguments: list[str], *, ranks: int, must_send: int, timeout: float = 600) -> Job:
        """Run this Python on `ranks` ranks, one host each as far as there are hosts.

        Args:
            arguments: what follows `python`.
            ranks: how many.
            must_send: bytes that the ranks together have to send to each other.
            timeout: seconds after which the job is ended.

        Raises:
            WireError: less than `must_send` left the hosts, so the ranks did not use the links.
            TimeoutError: the job took longer than `timeout`.
            RuntimeError: the job failed; the text is what it printed.
        """
        assert self._folder is not None, "the cluster is not made"
        before, started = self._sent(), time.monotonic()
        addresses = ",".join(f"{SUBNET}.{number}" for number in range(1, self.hosts + 1))
        process = subprocess.Popen(
            ["ip", "netns", "exec", f"{self.name}-switch", str(mpiexec()), "-launcher", "ssh"]
            + ["-launcher-exec", f"{self._folder.name}/agent", "-localhost", SWITCH_ADDRESS]
            + ["-hosts", addresses, "-n", str(ranks), sys.executable, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
            env={**os.environ, **MPI_ENVIRONMENT},
            start_new_session=True,  # Ctrl-C reaches this process alone, which then ends the job
        )
        try:
            output, errors = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"the job did not end within {timeout:g} s") from None
        finally:
            self._end_processes()
            process.wait()
        if process.returncode:
            raise RuntimeError(f"the job ended with {process.returncode}:\n{errors}{output}")
        sent = [after - was for after, was in zip(self._sent(), before, strict=True)]
        if sum(sent) < must_send:
            raise WireError(
                f"{sum(sent):,} bytes left the hosts, but the job must send {must_send:,}: "
                "the ranks did not talk over the links (shared memory, or a wrong interface?)"
            )
        return Job(output=output, seconds=time.monotonic() - started, sent=sent)

    def remove(self) -> None:
        """End every process of the cluster, then remove its namespaces, and so its links."""
        with undisturbed():
            remove_namespaces(namespaces(f"{self.name}-"))
            if self._folder is not None:
                self._folder.cleanup()
                self._folder = None
            atexit.unregister(self.remove)
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        self._handlers.clear()

    def _make(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix=f"{self.name}-")
        agent = Path(self._folder.name) / "agent"
        agent.write_text(AGENT.format(name=self.name))
        agent.chmod(0o700)
        switch = f"{self.name}-switch"
        ip("netns", "add", switch)
        ip("-n", switch, "link", "set", "lo", "up")
        ip("-n", switch, "link", "add", "name", "bridge0", "type", "bridge")
        ip("-n", switch, "address", "add", f"{SWITCH_ADDRESS}/24", "dev", "bridge0")
        ip("-n", switch, "link", "set", "bridge0", "up")
        for number in range(1, self.hosts + 1):
            host, port = f"{self.name}-{number}", f"port{number}"
            ip("netns", "add", host)
            veth = ["type", "veth", "peer", "name", "eth0", "netns", host]
            ip("-n", switch, "link", "add", "name", port, *veth)
            ip("-n", switch, "link", "set", port, "master", "bridge0", "up")
            ip("-n", host, "link", "set", "lo", "up")
            ip("-n", host, "address", "add", f"{SUBNET}.{number}/24", "dev", "eth0")
            ip("-n", host, "link", "set", "eth0", "up")
            for namespace, device in ((host, "eth0"), (switch, port)):
                limit = ["rate", f"{self.mbit:g}mbit", "burst", f"{self.burst_kib}kb"]
                qdisc = ["qdisc", "add", "dev", device, "root", "tbf", *limit, "latency", "1s"]
                command("tc", "-n", namespace, *qdisc)

    def _sent(self) -> list[int]:
        counters = []
        for number in range(1, self.hosts + 1):
            answer = ip("-n", f"{self.name}-{number}", "-s", "-j", "link", "show", "eth0")
            counters.append(json.loads(answer)[0]["stats64"]["tx"]["bytes"])
        return counters

    def _end_processes(self) -> None:
        end_processes(namespaces(f"{self.name}-"))


def _leave(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Hold back Ctrl-C and signals to end until the block is done."""
    if threading.current_thread() is not threading.main_thread():
        yield  # handlers run in the main thread alone
        return
    held: list[int] = []
    stopping = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(number, lambda number, _: held.append(number)) for number in stopping]
    try:
        yield
    finally:
        for stop, handler in zip(stopping, before, strict=True):
            signal.signal(stop, handler)
        for number in held[:1]:
            signal.raise_signal(number)


def command(*arguments: str) -> str:
    """Run a command that Ctrl-C does not reach; return what it prints.

    Raises:
        OSError: it failed; the text is what it says.
    """
    done = subprocess.run(
        arguments, capture_output=True, text=True, check=False, start_new_session=True
    )
    if done.returncode:
        raise OSError(f"{' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout


def ip(*arguments: str) -> str:
    """Run `ip`."""
    return command("ip", *arguments)


def mpiexec() -> Path:
    """Return the mpiexec that is installed beside this Python, else the one on the path."""
    beside = Path(sys.executable).with_name("mpiexec")
    return beside if beside.exists() else Path(shutil.which("mpiexec") or "mpiexec")


def namespaces(prefix: str) -> list[str]:
    """Return the network namespaces whose names begin so."""
    return sorted(path.name for path in NAMESPACES.glob(f"{prefix}*"))


def end_processes(names: list[str]) -> None:
    """Kill the processes in namespaces and wait until they are gone."""
    deadline = time.monotonic() + 10
    while True:
        found = [int(pid) for name in names for pid in ip("netns", "pids", name).split()]
        if not found:
            return
        if time.monotonic() > deadline:
            raise OSError(f"processes of the emulated cluster that do not end: {found}")
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)


def remove_namespaces(names: list[str]) -> None:
    """Remove namespaces, and first the processes in them."""
    try:
        end_processes(names)
    finally:
        for name in names:
            with contextlib.suppress(OSError):  # gone already, or named below
                ip("netns", "delete", name)
    if left := [name for name in names if (NAMESPACES / name).exists()]:
        raise OSError(f"network namespaces that cannot be removed: {', '.join(left)}")


def remove_abandoned() -> None:
    """Remove the namespaces and folders of processes that are no more (ended by SIGKILL)."""

    def abandoned(name: str) -> bool:
        pid = name.split("-")[1]
        return pid.isdigit() and not Path("/proc", pid).exists()

    for name in filter(abandoned, namespaces(f"{PREFIX}-")):
        with contextlib.suppress(OSError):  # another process removes it as well
            remove_namespaces([name])
    for agent in Path(tempfile.gettempdir()).glob(f"{PREFIX}-*/agent"):
        if abandoned(agent.parent.name):
            shutil.rmtree(agent.parent, ignore_errors=True)


@functools.cache
def reason_missing() -> str | None:
    """Return why no cluster can be made here, in one line, or None where one can."""
    if not sys.platform.startswith("linux"):
        return "an emulated cluster needs Linux"
    if os.geteuid() != 0:
        return "an emulated cluster needs root, for network namespaces"
    for tool in ("ip", "tc"):
        if not shutil.which(tool):
            return f"an emulated cluster needs `{tool}` (iproute2)"
    try:
        if "HYDRA" not in command(str(mpiexec()), "--version"):
            return f"an emulated cluster needs MPICH, and {mpiexec()} is another MPI's"
        with Cluster(hosts=1, mbit=100):
            return None
    except OSError as error:
        return f"no emulated cluster can be made here: {error}"
