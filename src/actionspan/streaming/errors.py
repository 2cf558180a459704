"""What goes wrong in a stage, with its place."""


class StageError(RuntimeError):
    """A stage failed. The message is one line; the cause or a note holds the traceback.

    `stage` counts from 0, and `sample` is the one that the stage held; -1: none.
    """

    def __init__(self, stage: int, stages: int, sample: int, what: str) -> None:
        super().__init__(stage, stages, sample, what)
        self.stage, self.stages, self.sample, self.what = stage, stages, sample, what

    def __str__(self) -> str:
        held = f", sample {self.sample}" if self.sample >= 0 else ""
        return f"stage {self.stage + 1} of {self.stages}{held}: {self.what}"


class StallError(StageError):
    """A stage gave no sign of life before the deadline."""


class CaptureError(StageError, ValueError):
    """A stage does in a step what no CUDA graph can repeat."""


class LinkClosedError(Exception):
    """The other end of a link is gone: a neighbour ended, and says itself why."""
