"""Write a verdict on each claim of paper 000: by its fits, by counting, and by our timed runs."""

import argparse
from collections.abc import Mapping, Sequence

import numpy as np

from actionspan.files.tables import add_outputs
from actionspan.papers.claims import NOT_REPRODUCED, REPRODUCED, Claim, Finding, write_claims
from actionspan.papers.estimates import Estimate
from actionspan.papers.ring.fits import add_times
from actionspan.papers.ring.measured import measured_evidence
from actionspan.papers.ring.published import GPUS, PRINTED, RING_BY_EQUATION_1, ratios, times
from actionspan.scaling.crossover import faster_ranges
from actionspan.scaling.least_squares import least_squares
from actionspan.scaling.table import Run, read_times
from actionspan.scaling.timing_model import model_columns

Evidence = Mapping[str, tuple[float, str] | Estimate | str]
"""By claim an exact number and why, an estimate, or why there is neither; above 0 speaks for it."""

# key | claim | place | better | worse | measure | form
_CLAIMS = """
faster | the ring is faster | figure 9 | ring | ps | seconds | +.1f
own | the ring has the higher speed ratio | figure 9 | ring | ps | t0 = own T + P | +.3f
common | the ring has the higher speed ratio | figure 9 | ring | ps | t0 = T + P of ps | +.3f
growing | with more GPUs it gets better and better | section IV | ring | ps | least gain | +.3f
beyond | on many GPUs the ring is faster | section IV | ring | ps | seconds | +.1f
larger | better above all for millions of videos | abstract | ring | ps | seconds | +.1f
less | t2 becomes less than the server's | section III-E | ring | ps | t2 in seconds | +.1f
slower | a larger C shows a slower transfer | section IV | ps | ring | C | +.1f
negative | equation 1 gives the ring C < 0 | section IV | 0 | C | fit to its curve | +.2f
same | T is the time of one GPU, within 1 % the same | equation 1 | 1 % | apart | percent | +.1f
others | faster than other proposal methods | section V | ring | others | seconds | +.1f
gather | the gather gives all GPUs all sums | section III-D | right | wrong | GPU numbers | +.0f
total | the total transmission is less | abstract | ring | ps | K in all | +.1f
worker | the total transmission is less | abstract | ring | ps_worker | K in all | +.1f
busiest | less traffic at the busiest machine | section III-D | ring | ps | K | +.2f
our_seconds | the ring is faster | figure 9 | ring | ps | our runs, % | +.1f
our_lead | with more ranks it gets better | section IV | ring | ps | our runs, lead in % | +.1f
our_t2 | t2 is less than the server's | section III-E | ring | ps | our runs, t2, % | +.1f
our_t1 | t1 is inversely proportional to n | section III-E | 10 % | apart | our runs, % | +.1f
our_negative | equation 1 gives the ring C < 0 | section IV | 0 | C | our runs, seconds | +.4f
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    add_times(parser)
    add_outputs(parser)


def run(arguments: argparse.Namespace) -> None:
    """Write the verdicts as TSV and Markdown."""
    runs = read_times(arguments.times) if arguments.times else []
    caption = [
        "A difference above 0 speaks for the claim. Our runs have the 95 % interval over their "
        f"repeats (Welch). All else is exact: it follows from the printed fits, on {GPUS} GPUs "
        "where none are named, or from counting. No table of the paper has its times, so its fits "
        "stand for them. The gain is that of the ring's lead in speed ratio from one GPU more; K "
        "is the size of the gradient.",
    ]
    write_claims(arguments, judge_claims(runs), "000", caption)


def judge_claims(runs: Sequence[Run]) -> list[Finding]:
    """Return a finding for each claim, on our runs where it is about them."""
    evidence = {**fit_evidence(), **counted_evidence(), **measured_evidence(runs)}
    findings = []
    for line in _CLAIMS.strip().splitlines():
        key, text, place, better, worse, measure, form = map(str.strip, line.split("|"))
        claim = Claim(
            text=text,
            source=f"000, {place}",
            better=better,
            worse=worse,
            measure=measure,
            key=key,
            form=form,
        )
        found = evidence[key]
        if not isinstance(found, tuple):
            findings.append(claim.judged(found))
            continue
        value, why = round(float(found[0]), 9) + 0.0, found[1]  # no -0
        verdict = REPRODUCED if value > 0 else NOT_REPRODUCED
        findings.append(
            Finding(claim=claim, difference=value, low=value, high=value, verdict=verdict, why=why)
        )
    return findings


def fit_evidence() -> Evidence:
    """Return what the printed fits say about the claims, and what they leave open."""
    server, ring = PRINTED["ps"], PRINTED["ring"]
    gpus = np.arange(2.0, GPUS + 1)
    server_times, ring_times = times("ps", gpus), times("ring", gpus)
    lead = ratios("ring", gpus) - ratios("ps", gpus)
    alone = server[0] + server[2]
    # equation 2 is the curve a/n + b·n + c with b = 0
    slope, level = ring[0] - ring[1], ring[1] + ring[2]
    ((_, last),) = faster_ranges(server, (slope, 0.0, level))
    beyond = np.array([float(last or 0) + 1])
    by_equation_1 = least_squares(model_columns("ps", gpus), ring_times)
    noise = abs(RING_BY_EQUATION_1) / float(by_equation_1.inverse[1, 1]) ** 0.5
    saved = server[1] * gpus - ring[1] * (gpus - 1) / gpus
    apart = 100 * abs(ring[0] / server[0] - 1)
    undetermined = (
        f"Run times leave the ring's C open: any C with T = {slope:.1f} + C and P = {level:.1f} - C"
        " gives the same times"
    )
    return {
        "faster": (
            server_times[-1] - ring_times[-1],
            f"{ring_times[-1]:.1f} s against {server_times[-1]:.1f} s.",
        ),
        "own": (
            lead[-1],
            " against ".join(f"{ratios(n, gpus)[-1]:.3f}" for n in ("ring", "ps")) + ".",
        ),
        "common": (
            alone / ring_times[-1] - alone / server_times[-1],
            f"There is only one time of one GPU; of the server's fit it is {alone:.1f} s.",
        ),
        "growing": (
            np.diff(lead).min(),
            f"Lead in speed ratio on 2 to {GPUS} GPUs: {', '.join(f'{x:+.3f}' for x in lead)}.",
        ),
        "beyond": (
            times("ps", beyond)[0] - times("ring", beyond)[0],
            f"On {beyond[0]:.0f} GPUs. Up to {last} the server is faster; {GPUS} were run.",
        ),
        "larger": f"No times of two sizes are printed. {undetermined}, but not of longer training.",
        "less": (
            saved[-1],
            f"From {gpus[saved > 0][0]:.0f} GPUs on by the printed C. {undetermined}.",
        ),
        "slower": f"{undetermined}. The server's C is multiplied by n, the ring's by (n - 1)/n.",
        "negative": (
            -by_equation_1.coefficients[1],
            "Equation 2 is equation 1 with C = 0, so the sign is noise: errors of "
            f"{noise:.1f} s a run (standard deviation) move C by the printed {RING_BY_EQUATION_1}.",
        ),
        "same": (
            1 - apart,
            f"{apart:.1f} % apart; to be equal the ring's C would have to be "
            f"{server[0] - slope:.1f}.",
        ),
        "others": "The paper has no time of another method.",
    }


def counted_evidence() -> Evidence:
    """Return what counting blocks and bytes says."""
    # after the scatter GPU n has the sum of block n + 1; the printed gather begins with n - 1
    right = [size for size in range(2, GPUS + 1) if (1 + 1) % size == 0]
    each = 2 * (GPUS - 1) / GPUS  # K that a GPU of the ring sends, and one of sharded servers
    return {
        "gather": (
            2 * len(right) - (GPUS - 1),
            f"Of 2 to {GPUS} GPUs it is right for {right}: GPU n has the sum of block n + 1 and is "
            "told to send block n - 1. Blocks n - i + 1 and n - i are right for all.",
        ),
        "total": (2 * GPUS - each * GPUS, f"{each * GPUS:.0f} K against {2 * GPUS} K."),
        "worker": (0.0, f"{each * GPUS:.0f} K each, where the server is on one of the GPUs."),
        "busiest": (
            2 * GPUS - each,
            f"{each:.2f} K against {2 * GPUS} K. Sharded servers send no more than the ring; the "
            "paper's is a single one.",
        ),
    }
