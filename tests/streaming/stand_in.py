"""A stand-in for GPUs that runs all on CPU, at once, and checks who would have waited for whom.

Every operation of torch is seen, with the memory that it reads and writes, and put on the timeline
of the stream that was current. A timeline knows what has happened before it (a vector clock): its
own past, what the host had seen when it gave the work, and the events that it waited for. Two
accesses to the same memory, one of them a write, with no order between them are a race.

A captured graph is the list of operations on the very tensors of the capture: replaying runs no
line of the module, so what a graph would not repeat is not repeated here either.
"""

from collections import Counter
from contextlib import contextmanager

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

KINDS = ("compute", "receive", "send")  # the order in which a lane asks for its streams
ONLY_FORM = {"empty_like", "zeros_like", "ones_like", "new_empty", "new_zeros", "new_empty_strided"}
HOST_READS = {"_local_scalar_dense", "equal"}


def tensors_in(values):
    return [leaf for leaf in tree_leaves(values) if isinstance(leaf, torch.Tensor)]


def written_by(func, args, kwargs):
    """Return the arguments that an operation writes into."""
    found = []
    for place, argument in enumerate(func._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            value = args[place] if place < len(args) else kwargs.get(argument.name)
            found += tensors_in(value)
    if func.overloadpacket.__name__ == "native_batch_norm":
        found += tensors_in(args[3:5])  # its schema does not say that it writes the statistics
    return found


def aliases(func):
    """Return whether what an operation returns is memory that was given to it."""
    returned = func._schema.returns
    return not returned or any(each.alias_info is not None for each in returned)


class Stream:
    def __init__(self, name, device, kind):
        self.name, self.device, self.kind = name, device, kind


class Happened:
    """An event: what its stream had done."""

    def __init__(self, stream, clock):
        self.stream, self.clock, self.asked = stream, clock, 0


class Memory:
    """What is known of a piece of memory."""

    def __init__(self, home, owner):
        self.home, self.owner = home, owner  # a device or "host"; the stream it was taken in
        self.free_for_all = owner is None
        self.written = None  # timeline and its time
        self.read = {}
        self.holders, self.users = set(), set()


class Machine(TorchDispatchMode):
    """A machine with GPUs, in the place of `actionspan.streaming.device.CudaBackend`.

    The host must ask `patience` times before an event has happened. To break a schedule, waits of
    the pairs `deaf` (who waits, for whom) are dropped, or `hold` does not work.
    """

    def __init__(self, gpus=1, patience=0, deaf=(), holds=True):
        super().__init__()
        self._gpus, self.patience, self.deaf, self._holds = gpus, patience, set(deaf), holds
        self.host = Stream("host", "host", "host")
        self.default = Stream("default", None, "default")
        self.clocks = {"host": {"host": 0}, "default": {"default": 0}}
        self.streams, self._stack = [], []
        self._memory, self._alive = {}, []
        self.races, self.waits, self.log = [], Counter(), []
        self.tape = None
        self.generators = [torch.Generator().manual_seed(99) for _ in range(gpus)]

    # ---- the backend
    def devices(self):
        return [torch.device("cuda", index) for index in range(self._gpus)]

    def place(self, module, device):
        for tensor in (*module.parameters(), *module.buffers()):
            self._of(tensor, home=device).free_for_all = True

    def stream(self, device):
        self._outside_capture("a stream was made")
        kind = KINDS[len(self.streams) % 3]
        stream = Stream(f"{kind} {len(self.streams) // 3 + 1}", device, kind)
        self.streams.append(stream)
        self.clocks[stream.name] = {stream.name: 0}
        return stream

    @contextmanager
    def on(self, stream):
        self._stack.append(stream)
        try:
            yield
        finally:
            self._stack.pop()

    def record(self, stream):
        self._outside_capture("an event was recorded")
        self._tick(stream)
        self.log.append(("record", stream.name, None))
        return Happened(stream, dict(self.clocks[stream.name]))

    mark = record

    def seconds(self, begin, end):
        return float(sum(end.clock.values()) - sum(begin.clock.values()))

    def wait(self, stream, event):
        self._outside_capture("a stream waited")
        pair = (stream.kind, event.stream.kind)
        self.waits[pair] += 1
        self.log.append(("wait", stream.name, event.stream.name))
        if pair not in self.deaf:
            self._join(stream, event.clock)

    def done(self, event):
        self._outside_capture("an event was asked")
        event.asked += 1
        if event.asked <= self.patience:
            return False
        self._join(self.host, event.clock)
        return True

    def synchronize(self):
        self._outside_capture("the host waited")
        self.log.append(("synchronize", "host", None))
        for clock in list(self.clocks.values()):
            self._join(self.host, clock)

    def empty(self, like, device):
        stream = self._stack[-1]
        assert stream.device == device, "memory of another device than the stream's"
        return self._taken(like, device, stream)

    def static(self, like, device):
        self.synchronize()
        return self._taken(like, device, None)

    def pinned(self, like):
        return self._taken(like, "host", None)

    def _taken(self, like, home, owner):
        self._outside_capture("memory was taken")
        tensor = torch.empty_like(like.detach())
        storage = tensor.untyped_storage()
        self._memory[storage._cdata] = Memory(home, owner)
        self._alive.append(storage)
        return tensor

    def copy(self, target, source):
        self.log.append(("copy", self._now().name, None))
        with self._copying():
            target.copy_(source, non_blocking=True)

    def copy_across(self, target, source, send, receive):
        assert send.device != receive.device
        self._join(send, self.clocks[receive.name])
        self._of(target).holders.add(send.name)  # the two streams meet on both sides of the copy
        with self.on(send):
            self.copy(target, source)
        self._join(receive, self.clocks[send.name])

    def hold(self, tensor, stream):
        if self._holds:
            self._of(tensor).holders.add(stream.name)

    def random(self, device):
        return self.generators[device.index].get_state()

    def set_random(self, device, state):
        self.generators[device.index].set_state(state)

    def seeded(self, device, seed):
        return torch.Generator().manual_seed(seed + 1000).get_state()

    def capture(self, stream, works):
        self.synchronize()
        return [self._captured(stream, work) for work in works]

    def replay(self, graph):
        stream = self._stack[-1]
        self.log.append(("replay", stream.name, graph))
        with torch.no_grad(), torch.utils._python_dispatch._disable_current_modes():
            for func, args, kwargs, outputs in graph:
                self._note(stream, func, args, kwargs, outputs)
                again = func(*args, **kwargs)
                if not aliases(func):
                    for old, new in zip(tree_leaves(outputs), tree_leaves(again), strict=True):
                        if isinstance(old, torch.Tensor):
                            old.copy_(new)

    # ---- what is found
    def check(self):
        """Raise an AssertionError that names what was not in order."""
        unheld = {
            f"memory of {memory.owner.name} is used by {user}, and nobody holds it"
            for memory in self._memory.values()
            if not memory.free_for_all
            for user in memory.users - memory.holders - {memory.owner.name, "host"}
        }
        found = [*dict.fromkeys(self.races), *sorted(unheld)]
        assert not found, "\n".join(found[:5])

    # ---- inside
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = func.overloadpacket.__name__
        if self.tape is not None:
            return self._taped(func, name, args, kwargs)
        result = func(*args, **kwargs)
        self._note(self._now(), func, args, kwargs, result)
        return result

    def _taped(self, func, name, args, kwargs):
        if name in HOST_READS:
            raise RuntimeError("operation not permitted when stream is capturing")
        tape, new, saved = self.tape
        for tensor in written_by(func, args, kwargs):
            storage = tensor.untyped_storage()
            if storage._cdata not in new and storage._cdata not in saved:
                saved[storage._cdata] = (storage, storage.clone())
        result = func(*args, **kwargs)
        tape.append((func, args, kwargs, result))
        if not aliases(func):
            for tensor in tensors_in(result):
                storage = tensor.untyped_storage()
                new[storage._cdata] = storage
                self._memory[storage._cdata] = Memory(self._now().device, self._now())
                self._alive.append(storage)
        return result

    def _captured(self, stream, work):
        tape, saved = [], {}
        self.tape = (tape, {}, saved)
        try:
            with self.on(stream):
                work()
        finally:
            self.tape = None
            for storage, before in saved.values():
                storage.copy_(before)
        return tape

    def _outside_capture(self, what):
        if self.tape is not None:
            raise RuntimeError(f"{what} while a stream was capturing")

    def _now(self):
        return self._stack[-1] if self._stack else self.host

    def _of(self, tensor, home=None):
        storage = tensor.untyped_storage()
        if storage._cdata not in self._memory:
            self._alive.append(storage)  # an address must not be used twice
            self._memory[storage._cdata] = Memory(home or "host", None)
        memory = self._memory[storage._cdata]
        if home is not None:
            memory.home = home
        return memory

    def _tick(self, stream):
        self._join(stream, self.clocks["host"])
        self.clocks[stream.name][stream.name] += 1

    def _join(self, stream, clock):
        mine = self.clocks[stream.name]
        for name, time in clock.items():
            mine[name] = max(mine.get(name, 0), time)

    @contextmanager
    def _copying(self):
        self._copies = True
        try:
            yield
        finally:
            self._copies = False

    _copies = False

    def _note(self, stream, func, args, kwargs, result):
        """Put an operation on its timeline."""
        name = func.overloadpacket.__name__
        given, made = tensors_in((args, kwargs)), tensors_in(result)
        if all(tensor.dtype == torch.uint8 for tensor in (*given, *made)):
            return  # states of random generators, which are the host's
        written = written_by(func, args, kwargs)
        if func._schema.returns and aliases(func) and not written:
            return  # a view touches nothing
        inside = stream is not self.host
        homes = {self._of(tensor).home for tensor in given}
        if "host" in homes and homes <= {"host", "any"} and not self._copies:
            stream = self.host  # tensors of the host are its own work, whatever stream is current
        elif homes - {"host", "any"} and stream is self.host:
            stream = self.default
        self._tick(stream)
        if name not in ONLY_FORM:
            for tensor in given:
                self._read(stream, tensor, name)
        for tensor in written:
            self._write(stream, tensor, name)
        if not aliases(func):
            home = "host" if stream is self.host or name == "_to_copy" else stream.device
            if stream is self.host and inside:
                home = "any"  # a state that is being loaded: torch would move it
            for tensor in made:
                storage = tensor.untyped_storage()
                if storage._cdata not in self._memory:
                    self._alive.append(storage)
                    owner = None if home in ("host", "any") or stream is self.default else stream
                    self._memory[storage._cdata] = Memory(home, owner)
                self._write(stream, tensor, name)
        if name in HOST_READS or (name == "_to_copy" and stream is not self.host):
            self._join(self.host, self.clocks[stream.name])

    def _read(self, stream, tensor, name):
        memory = self._of(tensor)
        if memory.home == "host" and tensor.dim() == 0 and not self._copies:
            stream = self.host  # a number: the host gives its value to the kernel
        self._placed(stream, memory, tensor, name)
        self._after(stream, memory.written, f"{name} on {stream.name} reads too early what")
        memory.read[stream.name] = self.clocks[stream.name][stream.name]
        if name != "_to_copy":  # the host waits for that
            memory.users.add(stream.name)

    def _write(self, stream, tensor, name):
        memory = self._of(tensor)
        self._placed(stream, memory, tensor, name)
        self._after(stream, memory.written, f"{name} on {stream.name} writes too early what")
        for reader in memory.read.items():
            self._after(stream, reader, f"{name} on {stream.name} overwrites what is read by")
        memory.written = (stream.name, self.clocks[stream.name][stream.name])
        memory.read = {}
        memory.users.add(stream.name)

    def _after(self, stream, access, what):
        if access is not None and self.clocks[stream.name].get(access[0], 0) < access[1]:
            self.races.append(f"{what} {access[0]}")

    def _placed(self, stream, memory, tensor, name):
        if self._copies or stream in (self.host, self.default) or tensor.dim() == 0:
            return
        if memory.home == "host" and name in ("copy_", "_to_copy"):
            return  # torch lets the host wait
        if memory.home not in (stream.device, "any"):
            self.races.append(f"{name} on {stream.name} touches memory of {memory.home}")
