"""The published numbers of paper 001's tables, each with its source, and the runs next to them.

The values, in percent, are written as they are printed; fractions (0.756) are written as 75.6.
They were measured with the features of each paper, on all of ActivityNet-1.3 or THUMOS14.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from actionspan.workflow.runs import RunName

Config = Mapping[str, Any]
"""The checked configuration."""

TableName = Literal["table1", "table2", "table3"]

THUMOS14 = ("thumos14_AR@50", "thumos14_AR@100", "thumos14_AR@200", "thumos14_AR@500")
ACTIVITYNET = ("AR@1", "AR@5", "AR@10", "AR@50", "AR@100", "AUC")


class PublishedRow(NamedTuple):
    """The numbers of a method as they are printed."""

    name: str = ""
    """The paper's name of it."""
    values: Mapping[str, str] = {}
    """By measure."""
    source: str = ""


class Table(NamedTuple):
    """A table of the paper: its measures, and its rows in the order in which we show them."""

    title: str
    metrics: tuple[str, ...]
    rows: Mapping[str, PublishedRow]
    """By our name of the method; where we do not build it, by the paper's."""
    others_below: bool = False
    """Whether our methods that it does not name are below its rows; else above them."""


def _table(number: int, title: str, metrics: tuple[str, ...], text: str) -> Table:
    """Return a table of the rows `method | name | numbers | source`; a dash means no number.

    A source that begins with a bracket is a remark on the table itself, as is an empty source.
    """
    rows = {}
    for line in text.strip().splitlines():
        method, name, numbers, source = (cell.strip() for cell in line.split("|"))
        cells = zip(metrics, numbers.split(), strict=True)
        values = {metric: cell for metric, cell in cells if cell != "-"}
        if not source.startswith("001"):
            source = f"001, table {number} {source}".strip()
        rows[method] = PublishedRow(name, values, source)
    return Table(title, metrics, rows, others_below=number == 3)


_TABLE1 = """
tag         | Zhao et al. (TAG) | 65.3 53.02 | (BSN's paper prints another AR@100 for this row)
Dai et al.  | Dai et al.        | -    59.58 |
Yao et al.  | Yao et al.        | -    63.12 |
origin      | Lin et al. (BSN)  | 74.8 66.17 | (BSN's paper prints AR@100 74.16)
se          | SE-ConvNet        | 75.0 66.57 | 001, table 3
dense       | Mul-DenseNet      | 75.1 66.85 | 001, table 3
mtn         | MTN               | 75.6 67.26 |
"""
_ON_C3D = "(BSN on C3D features; 37.46 46.06 53.21 60.64 on two-stream ones)"
_TABLE2 = f"""
DAPs      | DAPs      | 13.56 23.83 33.96 49.29 |
SCNN-prop | SCNN-prop | 17.22 26.17 37.01 51.57 |
SST       | SST       | 19.90 28.36 37.90 51.58 |
TURN      | TURN      | 19.63 27.96 38.34 53.52 |
origin    | BSN       | 29.58 37.38 45.55 54.67 | {_ON_C3D}
mtn       | MTN       | 30.61 38.12 46.24 55.31 | (its features are not named)
"""
_TABLE3 = """
origin | Origin       | 29.2 46.9 54.9 69.6 74.8 66.17 |
se     | SE-ConvNet   | 30.3 47.6 55.3 69.9 75.0 66.57 |
dense  | Mul-DenseNet | 31.7 48.2 55.6 70.2 75.1 66.85 |
mtn    | MTN          | 33.2 49.0 56.2 70.6 75.6 67.26 |
"""
_TITLE1 = "proposals on ActivityNet-1.3 (validation), ActivityNet's protocol"
_TITLE2 = "proposals on THUMOS14 (test), THUMOS14's protocol"
_TITLE3 = "ablation of MTN on ActivityNet-1.3, ActivityNet's protocol"

TABLES: Mapping[TableName, Table] = {
    "table1": _table(1, _TITLE1, ("AR@100", "AUC"), _TABLE1),
    "table2": _table(2, _TITLE2, THUMOS14, _TABLE2),
    "table3": _table(3, _TITLE3, ACTIVITYNET, _TABLE3),
}

_LOSS_MODELS = ("origin", "cnn2", "cnn4", "mtn")
"""The curves of paper 001's figure 10."""


def table_scores(config: Config, table: str) -> list[str]:
    """Return the scores by video that a table is made of."""
    models = TABLES["table3"].rows if table == "table3" else config["temporal"]["models"]
    return _video_scores(config, [*models, *_baselines(config)])


def claim_scores(config: Config) -> list[str]:
    """Return the scores by video that the claims compare."""
    return _video_scores(config, [*TABLES["table3"].rows, *(set(_baselines(config)) & {"tag"})])


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
