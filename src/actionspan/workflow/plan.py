"""The plan of a run: answers for the Snakefile from a checked configuration."""

from collections.abc import Mapping
from typing import Any

from actionspan.errors import InputError, counted
from actionspan.workflow.checking import check_config, check_names, check_settings, read_given
from actionspan.workflow.dataset import DatasetPlan, Storage
from actionspan.workflow.features import FeaturesPlan
from actionspan.workflow.jobs import ClusterPlan
from actionspan.workflow.outcomes import BROWSED, FoldsPlan, OutcomesPlan
from actionspan.workflow.runs import one_of
from actionspan.workflow.training import FinetunePlan, RanksPlan, RecognitionPlan


class Plan:
    """A part for each subject; its methods take the wildcards of a job.

    Args:
        config: The merged configuration.
        name: How messages call the configuration, e.g. `"config.yaml"`.
        storage: What lies in S3; by default nothing does.
        given: The part of it that `--config` gave, all of it where nobody can know.
        cores: Cores of this machine; None: jobs run on other machines.

    Raises:
        InputError: Something in it is wrong; the line names the key.
    """

    def __init__(
        self,
        config: dict[str, Any],
        name: str,
        storage: Storage | None = None,
        given: Mapping[str, Any] | None = None,
        cores: int | None = None,
    ) -> None:
        if given:
            read_given(config, given, name if given is config else "--config")
        check_config(config, name)
        name += " + --config" * bool(given and given is not config)
        check_settings(config, name)
        self.cluster = ClusterPlan(config)
        self.dataset = DatasetPlan(config, name, storage or Storage(), cores)
        self.recognition = RecognitionPlan(config, self.dataset.shards)
        self.features = FeaturesPlan(config, self.dataset.shards)
        check_names(self.dataset.annotation_files, f"{name}: dataset.annotations")
        check_names(self.recognition.clip_files, f"{name}: recognition.clips")
        check_names(self.features.external_files, f"{name}: features.external.folder")
        self.finetune = FinetunePlan(config)
        self.ranks = RanksPlan(config)
        videos = self.dataset.videos
        self.outcomes = OutcomesPlan(config, videos, self.features, self.ranks.run)
        self.folds = FoldsPlan(config, self.outcomes.methods)
        if videos and len(self.folds.numbers) > len(videos):
            raise InputError(
                f"{name}: evaluation.folds: {len(self.folds.numbers)} folds of "
                f"{counted(len(videos), 'video')}; at most one for each"
            )
        # without video files the ids are from the annotations, which are not read yet
        self.video_pattern = one_of(videos) if 0 < len(videos) <= BROWSED else "[^/]+"
