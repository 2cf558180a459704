"""Jobs that end before their parts are put together, as killed ones do."""

from collections.abc import Callable
from pathlib import Path

import pytest

from actionspan.jobs import parts


def parts_of_ended_job(out: Path, job: Callable[[], object]) -> dict[str, int]:
    """Run a job that makes `out` up to its end; return when each part was made, by name."""

    def end(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parts, "_packed", end)
        with pytest.raises(KeyboardInterrupt):
            job()
    assert not out.exists()
    made = out.with_name(f"{out.name}.parts").glob("*.h5")
    return {path.stem: path.stat().st_mtime_ns for path in made}
