"""The plan of a run: a checked configuration, and what the Snakefile asks about it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from actionspan.plan.checking import check_config, check_settings
from actionspan.plan.dataset import DatasetPlan, plan_dataset
from actionspan.plan.features import FeaturesPlan
from actionspan.plan.names import one_of
from actionspan.plan.outcomes import BROWSED, OutcomesPlan
from actionspan.plan.ranks import RanksPlan
from actionspan.plan.recognition import RecognitionPlan, plan_recognition


@dataclass(frozen=True)
class Plan:
    """A part for each subject; its methods take the wildcards of a job."""

    dataset: DatasetPlan
    recognition: RecognitionPlan
    features: FeaturesPlan
    ranks: RanksPlan
    outcomes: OutcomesPlan

    @property
    def video_pattern(self) -> str:
        """The ids of the videos as a pattern.

        Without video files they are those of the annotations, which are not read yet.
        """
        videos = self.dataset.videos
        return one_of(videos) if 0 < len(videos) <= BROWSED else "[^/]+"


def make_plan(config: Mapping[str, Any], schema: Path, name: str) -> Plan:
    """Check a configuration and plan a run.

    Args:
        config: The merged configuration.
        schema: config.schema.yaml.
        name: How messages call the configuration, e.g. `"config.yaml"`.

    Raises:
        InputError: Something in it is wrong; the line names the key.
    """
    check_config(config, schema, name)
    check_settings(config, name)
    dataset = plan_dataset(config, name)
    features = FeaturesPlan(config, list(dataset.shards))
    ranks = RanksPlan(config)
    return Plan(
        dataset=dataset,
        recognition=plan_recognition(config, dataset.shards),
        features=features,
        ranks=ranks,
        outcomes=OutcomesPlan(config, dataset.videos, features, ranks.run),
    )
