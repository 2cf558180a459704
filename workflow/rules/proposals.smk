# Probabilities → candidates (PGM) → their evaluation (PEM) → Soft-NMS → proposals, labels, detections.
#
# All of a model is made in one process: to start another takes longer than most of its steps.


rule proposals_losses:
    input:
        log="results/proposals/{model}/pem.tsv",
    output:
        report(
            "results/proposals/{model}/pem.{suffix,svg|png}",
            caption="../report/pem.rst",
            category="Training",
            labels={"figure": "losses of the evaluator", "model": "{model}"},
        ),
    log:
        "results/logs/proposals_losses/{model}.{suffix}.log",
    group:
        "scoring"
    conda:
        "../../envs/environment.yaml"
    resources:
        runtime=minutes(5, "scoring"),
    params:
        code=step("proposals losses"),
    shell:
        "python -m actionspan proposals losses --log {input.log} --out {output} > {log} 2>&1"


rule proposals_classifier:
    # Labels of proposals: trained once, for all models and baselines.
    input:
        features="results/features/{fold}features.h5",
        annotations="results/dataset/{fold}annotations.json",
    output:
        classifier="results/proposals/{fold}classifier.safetensors",
        log="results/proposals/{fold}classifier.tsv",
    log:
        "results/logs/proposals_classifier/{fold}classifier.log",
    benchmark:
        "results/benchmarks/proposals_classifier/{fold}classifier.tsv"
    conda:
        "../../envs/environment.yaml"
    resources:
        mem_mb=4000,
        runtime=minutes(240),
    params:
        code=step("proposals classifier"),
        settings=flags(config["proposals"]["classifier"]),
    shell:
        "python -m actionspan proposals classifier --features {input.features}"
        " --annotations {input.annotations} {params.settings}"
        " --out {output.classifier} --out-log {output.log} > {log} 2>&1"


rule proposals_generate:
    input:
        model=f"results/temporal/{{model}}/{plan.ranks.run}/model.safetensors",
        network_features=plan.outcomes.network_features,
        features=of_fold("results/features/features.h5"),
        annotations=of_fold("results/dataset/annotations.json"),
        classifier=of_fold("results/proposals/classifier.safetensors"),
    output:
        probabilities=f"results/temporal/{{model}}/{plan.ranks.run}/probabilities.h5",
        candidates="results/proposals/{model}/candidates.h5",
        scorer="results/proposals/{model}/pem.safetensors",
        log="results/proposals/{model}/pem.tsv",
        json="results/proposals/{model}/proposals.json",
        csv="results/proposals/{model}/proposals.csv",
        detections="results/proposals/{model}/detections.json",
        chapters=plan.outcomes.chapters_of,
        bundle=plan.outcomes.bundle,
    log:
        "results/logs/proposals_generate/{model}.log",
    benchmark:
        "results/benchmarks/proposals_generate/{model}.tsv"
    wildcard_constraints:
        model=seeded(EVALUATED_MODELS) + plan.folds.one,
    group:
        "scoring"
    conda:
        "../../envs/environment.yaml"
    resources:
        mem_mb=4000,
        runtime=minutes(280, "scoring"),
    params:
        code=step(
            "temporal predict",
            "proposals candidates",
            "proposals train",
            "proposals generate",
            "proposals detections",
            "proposals chapters",
            "proposals bundle",
        ),
        candidates=flags(config["proposals"]["candidates"]),
        training=lambda wildcards: seeded_flags(
            config["proposals"]["evaluator"], wildcards.model
        ),
        ranking=flags(
            {**config["proposals"]["ranking"], **config["proposals"]["suppression"]}
        ),
        detections=flags(config["proposals"]["detections"]),
        rest=plan.outcomes.rest,
    shell:
        "python -m actionspan temporal predict --model {input.model}"
        " --features {input.network_features} --out {output.probabilities}"
        " --then proposals candidates --probabilities {output.probabilities}"
        " {params.candidates} --out {output.candidates}"
        " --then proposals train --candidates {output.candidates}"
        " --annotations {input.annotations} {params.training}"
        " --out {output.scorer} --out-log {output.log}"
        " --then proposals generate --candidates {output.candidates}"
        " --evaluator {output.scorer} --classifier {input.classifier}"
        " --features {input.features} {params.ranking}"
        " --out-json {output.json} --out-csv {output.csv}"
        " --then proposals detections --proposals {output.json} --features {input.features}"
        " --classifier {input.classifier} {params.detections} --out {output.detections}"
        " {params.rest} > {log} 2>&1"


rule proposals_select:
    # The models span and stream: a density of instances in place of candidates, PEM and Soft-NMS.
    input:
        model=f"results/temporal/{{model}}/{plan.ranks.run}/model.safetensors",
        network_features=plan.outcomes.network_features,
        features=of_fold("results/features/features.h5"),
        annotations=of_fold("results/dataset/annotations.json"),
        classifier=of_fold("results/proposals/classifier.safetensors"),
        videos="results/dataset/videos.tsv",
        zones=files.given(plan.features.zones),
        shards=plan.features.zoned_shards,
    output:
        probabilities=f"results/temporal/{{model}}/{plan.ranks.run}/probabilities.h5",
        scorer="results/proposals/{model}/density.safetensors",
        json="results/proposals/{model}/proposals.json",
        csv="results/proposals/{model}/proposals.csv",
        events="results/proposals/{model}/events.json",
        table="results/proposals/{model}/events.csv",
        detections="results/proposals/{model}/detections.json",
        chapters=plan.outcomes.chapters_of,
        bundle=plan.outcomes.bundle,
    log:
        "results/logs/proposals_select/{model}.log",
    benchmark:
        "results/benchmarks/proposals_select/{model}.tsv"
    wildcard_constraints:
        model=seeded(ON_SEQUENCES) + plan.folds.one,
    group:
        "scoring"
    conda:
        "../../envs/environment.yaml"
    resources:
        mem_mb=4000,
        runtime=minutes(280, "scoring"),
    params:
        code=step(
            "temporal predict",
            "proposals density",
            "proposals select",
            "proposals detections",
            "proposals chapters",
            "proposals bundle",
        ),
        density=plan.outcomes.density_flags,
        settings=flags(
            {**config["proposals"]["selection"], **config["proposals"]["events"]}
        ),
        detections=flags(config["proposals"]["detections"]),
        zones=plan.features.zones_flag,
        zones_seen=files.seen(plan.features.zones),
        rest=plan.outcomes.rest,
    shell:
        "python -m actionspan temporal predict --model {input.model}"
        " --features {input.network_features} --out {output.probabilities}"
        " --then proposals density --probabilities {output.probabilities}"
        " --annotations {input.annotations} {params.density} --out {output.scorer}"
        " --then proposals select --probabilities {output.probabilities}"
        " --density {output.scorer} --classifier {input.classifier}"
        " --features {input.features} {params.settings}"
        " --out-json {output.json} --out-csv {output.csv}"
        " --out-events-json {output.events} --out-events-csv {output.table}"
        " --videos {input.videos} {params.zones} --shards {input.shards}"
        " --then proposals detections --proposals {output.json} --features {input.features}"
        " --classifier {input.classifier} {params.detections} --out {output.detections}"
        " {params.rest} > {log} 2>&1"


rule proposals_detections:
    input:
        proposals="results/proposals/{baseline}/proposals.json",
        features=of_fold("results/features/features.h5"),
        classifier=of_fold("results/proposals/classifier.safetensors"),
    output:
        "results/proposals/{baseline}/detections.json",
    log:
        "results/logs/proposals_detections/{baseline}.log",
    group:
        "scoring"
    conda:
        "../../envs/environment.yaml"
    resources:
        runtime=minutes(10, "scoring"),
    params:
        code=step("proposals detections"),
        settings=flags(config["proposals"]["detections"]),
    shell:
        "python -m actionspan proposals detections --proposals {input.proposals}"
        " --features {input.features} --classifier {input.classifier} {params.settings}"
        " --out {output} > {log} 2>&1"


if not plan.outcomes.chapters_of:  # of a set that nobody can browse: on demand

    rule proposals_chapters:
        input:
            proposals=plan.outcomes.listed,
            missing=plan.dataset.missing_video,
        output:
            "results/proposals/{model}/chapters/{video}.vtt",
        log:
            "results/logs/proposals_chapters/{model}/{video}.log",
        group:
            "scoring"
        conda:
            "../../envs/environment.yaml"
        resources:
            runtime=minutes(5, "scoring"),
        params:
            code=step("proposals chapters"),
            folder=subpath(output[0], parent=True),
            settings=flags(config["proposals"]["chapters"]),
        shell:
            "python -m actionspan proposals chapters --proposals {input.proposals}"
            " --videos={wildcards.video:q} {params.settings}"
            " --out-folder {params.folder} > {log} 2>&1"
