"""The settings that the workflow itself reads: which data and models, and on how many cores."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from actionspan.annotations.formats.records import Subset
from actionspan.evaluation.settings import BASELINES
from actionspan.networks.names import ImageNetwork
from actionspan.parallel.settings import ON_CPUS, ExchangeName
from actionspan.settings import Checked, option
from actionspan.temporal.settings import MODELS, ON_SEQUENCES, ModelName
from actionspan.workflow.jobs import SHORTEST

_SEVERAL = tuple(name for name in ON_CPUS if name != "none")


@dataclass(frozen=True, kw_only=True)
class DatasetKnobs(Checked):
    """Which videos and annotations a run is about."""

    videos: Path | None = option(
        Path("demo"),
        "a folder of videos; demo: the embedded data set; null: external features only",
    )
    annotations: Path | None = option(
        None,
        "a table video,start,end,label[,subset], ActivityNet JSON, THUMOS14 csv or folder, or what "
        "ELAN, BORIS, VIA, Label Studio, CVAT, … write: docs/formats.md (demo brings its own)",
    )
    video_info: Path | None = option(
        None, "video_info_new.csv, for subsets and durations that the annotations lack"
    )
    videos_per_shard: int | Literal["auto"] = option(
        "auto",
        "videos a job; auto: 24, in large sets up to 64, in small ones a job for each core",
        least=1,
        also="auto",
    )


@dataclass(frozen=True, kw_only=True)
class VideoKnobs(Checked):
    """The cores of decoding and flow, and whether their output is stored."""

    processes: int = option(1, "videos a job works on at once, one core each", least=1, most=4096)
    keep: bool = option(
        True,
        "frames and flow of a shard are files, deleted once features are made of them; false: one "
        "job goes from videos to the same features with nothing written between",
    )
    zones: Path | None = option(
        None,
        "zones.json of `actionspan review`: only what happens inside its zones counts "
        "(docs/loop.md); null: whole frames",
    )


@dataclass(frozen=True, kw_only=True)
class RecognitionKnobs(Checked):
    """What classifiers are trained on, and by how many learners."""

    clips: Path | None = option(
        None,
        "folder of trimmed clips: CLASS/clip.avi, or training/CLASS/clip.avi and so on; null: the "
        "segments of the training videos, and the background between them",
    )
    splits: Path | None = option(None, "folder of UCF101's or HMDB51's split files")
    split: int = option(1, "which of the splits", least=1, most=1_000)
    weights: Path | None = option(
        None,
        "initial weights of the networks: a checkpoint, or a name of torchvision's; null: the "
        "packaged weights, which only efficientnets have",
    )
    exchange: ExchangeName = option(
        "aavg", "how learners are joined (docs/recognition.md)", choices=ON_CPUS
    )
    learners: int = option(2, "P, learners that train together", least=1, most=4096)
    in_process: bool = option(False, "true: aavg's learners share one process, without MPI")
    threads: int = option(1, "cores of each learner", least=1, most=4096)


@dataclass(frozen=True, kw_only=True)
class FlowKnobs(Checked):
    """Settings of the flow classifier alone."""

    network: ImageNetwork | None = option(
        None,
        "its network (paper 001: bn_inception); another than RGB's needs aavg without transfer",
    )
    weights: Path | None = option(
        None, "its initial weights, as recognition.weights; null: the same if the networks are"
    )
    epochs: int | None = option(None, "passes over the training clips (paper 003: 200)", least=1)
    batch_size: int | None = option(None, "clips in a step at the start (paper 003: 64)", least=1)


@dataclass(frozen=True, kw_only=True)
class FinetuneKnobs(Checked):
    """On how many ranks encoders are tuned."""

    exchange: ExchangeName = option(
        "none", "how ranks exchange gradients, as in temporal.exchange", choices=ON_CPUS
    )
    ranks: int = option(1, "ranks that tune together", least=1, most=4096)
    threads: int = option(1, "cores of each rank", least=1, most=4096)


@dataclass(frozen=True, kw_only=True)
class FeaturesKnobs(Checked):
    """Where features come from."""

    source: Literal["pooled", "motion", "finetuned", "scores", "external"] = option(
        "pooled",
        "pooled features, two curves of motion and no network at all, features of encoders that "
        "were tuned on the training videos (docs/finetune.md), class scores of trained "
        "classifiers, or external files",
    )
    threads: int = option(1, "cores of each job", least=1, most=4096)


@dataclass(frozen=True, kw_only=True)
class ExternalKnobs(Checked):
    """Where external features are."""

    folder: Path | None = option(None, "folder of .npy, .csv or .h5 files named by video")


@dataclass(frozen=True, kw_only=True)
class TemporalKnobs(Checked):
    """Which networks are trained, and on how many ranks."""

    models: tuple[ModelName, ...] = option(
        ("origin", "mtn", "span"),
        "origin: BSN's TEM; se: its SE variant; dense: TEM + DenseNet; mtn: SE + DenseNet; cnn2, "
        "cnn4: TEM with 2 and 4 convolutions instead of 3; span: cross-fitted dilated "
        "convolutions over snippets; stream: span for a video that is still being recorded",
        fewest=1,
        choices=tuple(MODELS),
    )
    exchange: ExchangeName = option(
        "none",
        "how ranks exchange gradients; with aavg and periodic they make their own steps and "
        "average their models (docs/parallel.md)",
        choices=ON_CPUS,
    )
    ranks: int = option(
        1,
        "ranks that train together; ps and ps_async add a process, the server",
        least=1,
        most=4096,
    )
    threads: int = option(1, "cores of each rank; 1 is fastest for small sets", least=1, most=4096)


@dataclass(frozen=True, kw_only=True)
class EvaluationKnobs(Checked):
    """The baselines and figures of the evaluation."""

    subset: Subset = option("validation", "the subset of the videos to score")
    baselines: tuple[str, ...] = option(
        ("tiles", "sliding", "difference", "tag"),
        "random; tiles: equal parts; sliding: windows of many lengths; difference: grouped frame "
        "differences; tag: grouped actionness of the model origin, which is trained for it; cuts: "
        "runs of shots, for edited footage",
        choices=BASELINES,
    )
    timelines: int = option(1, "figures of single videos that a plain run draws", least=0)
    folds: int = option(
        0,
        "folds of cross-validation over the training videos (docs/protocol.md; snakemake folds); "
        "0 or 1: none",
        least=0,
        most=1_000,
    )
    seeds: int = option(
        3,
        "trainings of each method behind the papers' tables (snakemake tables)",
        least=1,
        most=1_000,
    )


@dataclass(frozen=True, kw_only=True)
class ReportKnobs(Checked):
    """Whether a run makes a page, and of which model."""

    page: bool = option(True, "results/report/index.html is made by a plain run")
    model: str | None = option(
        None, "source of its proposals and the timelines'; null: the last of temporal.models"
    )


@dataclass(frozen=True, kw_only=True)
class ScalingKnobs(Checked):
    """Which runs are timed."""

    model: ModelName = option(
        "mtn",
        "network that is trained",
        choices=tuple(name for name in MODELS if name not in ON_SEQUENCES),
    )
    exchanges: tuple[ExchangeName, ...] = option(
        ("ring", "ps"), "exchanges to compare, as in temporal.exchange", choices=_SEVERAL, fewest=1
    )
    ranks: tuple[int, ...] = option(
        (1, 2),
        "numbers of ranks; more than there are cores only show how cores are shared",
        least=1,
        most=4096,
        fewest=1,
    )
    repeats: int = option(3, "runs of each", least=1, most=1_000)
    epochs: int = option(40, "epochs of each run; with few, little but the start is timed", least=1)


@dataclass(frozen=True, kw_only=True)
class ClusterKnobs(Checked):
    """What jobs ask a cluster for."""

    max_runtime: int | None = option(
        None,
        "the longest time that a job asks for; give the limit of a short partition: a job it cuts "
        "off resumes where it stopped; null: as long as each rule may need",
        unit="minutes",
        least=SHORTEST,
    )
    container: str | None = option(
        None,
        "the image that jobs run in with --sdm apptainer (docs/cluster.md): a file, a folder, or a "
        "URI such as docker://…",
    )


@dataclass(frozen=True, kw_only=True)
class MpiKnobs(Checked):
    """How ranks are started."""

    launcher: str = option(
        "mpiexec",
        "starts ranks, followed by -n N or with the number instead of {ranks}; "
        "srun --mpi=pmi2 on SLURM (docs/parallel.md)",
        fewest=1,
    )
