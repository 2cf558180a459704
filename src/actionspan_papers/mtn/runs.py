"""The files of paper 001's tables and claims: scores and logs of its methods, by seed."""

from collections.abc import Iterable, Sequence

from actionspan.workflow.runs import RunName
from actionspan_papers.kinds import Config

_ABLATION = ("origin", "se", "dense", "mtn")
"""The methods of paper 001's table 3."""
_LOSS_MODELS = ("origin", "cnn2", "cnn4", "mtn")
"""The curves of paper 001's figure 10."""


def table_scores(config: Config, table: str) -> list[str]:
    """Return the scores by video that a table is made of."""
    models = _ABLATION if table == "table3" else config["temporal"]["models"]
    return _video_scores(config, [*models, *_baselines(config)])


def claim_scores(config: Config) -> list[str]:
    """Return the scores by video that the claims compare."""
    return _video_scores(config, [*_ABLATION, *(set(_baselines(config)) & {"tag"})])


def loss_logs(config: Config) -> list[str]:
    """Return the logs of training that figure 10 is made of."""
    section = config["temporal"]
    trained = f"{section['exchange']}-{section['ranks']}"
    names = _seed_names(config, _LOSS_MODELS)
    return [f"results/temporal/{name}/{trained}/log.tsv" for name in names]


def _seed_names(config: Config, methods: Iterable[str]) -> list[str]:
    """Return the names of all seeds of some methods; a method without chance has one."""
    count = config["evaluation"]["seeds"]
    return [
        str(RunName(method, seed))
        for method in methods
        for seed in range(1, 2 if method in ("sliding", "difference") else count + 1)
    ]


def _baselines(config: Config) -> Sequence[str]:
    """Return the configured baselines of the tables; external features have no differences.

    The rule of cuts, which the paper does not know, is in the other tables alone.
    """
    left_out = ("cuts", *(["difference"] if config["features"]["source"] == "external" else []))
    return [name for name in config["evaluation"]["baselines"] if name not in left_out]


def _video_scores(config: Config, methods: Iterable[str]) -> list[str]:
    return [f"results/evaluation/videos/{name}.tsv" for name in _seed_names(config, methods)]
