"""Campaigns of hostile input and injected faults, a line of counts each (docs/reliability.md).

python benchmarks/campaign.py config --seed 1 --count 2000
python benchmarks/campaign.py config --seed 1 --only 17   a case alone
python benchmarks/campaign.py all --seed 2                every campaign, as `make campaign`

A case that goes wrong is printed with its seed and number, and its files are kept. The exit status
is 1 if any went wrong.
"""

import argparse
import importlib
import os
import sys
import time
from pathlib import Path

NAMES = (
    *("config", "annotations", "videos", "features", "models"),
    *("inputs", "disk", "kills", "runs", "ranks"),
)


def main() -> None:
    """Run campaigns and print their counts."""
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], epilog=f"Campaigns: all, or {', '.join(NAMES)}."
    )
    parser.add_argument("campaigns", nargs="+", choices=("all", *NAMES), metavar="NAME")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, help="cases (default: those of `make campaign`)")
    parser.add_argument("--scale", type=float, default=1.0, help="factor on the default of cases")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--only", type=int, help="run this case alone")
    parser.add_argument("--jobs", type=int, default=1, help="cases at once")
    parser.add_argument("--out", type=Path, default=Path("build/campaigns"), help="wrong cases")
    arguments = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"  # before torch is loaded; a fork has one thread
    sys.path.append(str(Path(__file__).parents[1] / "tests"))  # faults that tests inject too
    from campaigns.cases import run_campaign, summary

    arguments.out.mkdir(parents=True, exist_ok=True)
    failed = False
    for name in NAMES if "all" in arguments.campaigns else arguments.campaigns:
        campaign = importlib.import_module(f"campaigns.{name}").CAMPAIGN
        count = arguments.count or max(1, round(campaign.count * arguments.scale))
        numbers = range(arguments.first, arguments.first + count)
        if arguments.only is not None:
            numbers = range(arguments.only, arguments.only + 1)
        began = time.monotonic(), _cpu()
        results = run_campaign(
            campaign, arguments.seed, numbers, arguments.out.resolve(), arguments.jobs
        )
        failed |= any(result.wrong for result in results)
        took = f"{time.monotonic() - began[0]:.0f} s, {_cpu() - began[1]:.0f} CPU s"
        print(f"{summary(name, arguments.seed, results)} ({took})", flush=True)
    sys.exit(failed)


def _cpu() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


if __name__ == "__main__":
    main()
