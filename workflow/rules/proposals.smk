# Probabilities → candidates (PGM) → their evaluation (PEM) → Soft-NMS → proposals, labels, detections.


rule proposals_candidates:
    input:
        probabilities=f"results/temporal/{{model}}/{plan.ranks.run}/probabilities.h5",
        code=step("proposals candidates"),
    output:
        "results/proposals/{model}/candidates.h5",
    log:
        "results/logs/proposals_candidates/{model}.log",
    group:
        "scoring"
    conda:
        "../../envs/environment.yaml"
    resources:
        runtime=minutes(30, "scoring"),
    params:
        settings=flags(config["proposals"]["candidates"]),
    shell:
        "python -m actionspan proposals candidates --probabilities {input.probabilities}"
        " {params.settings} --out {output} > {log} 2>&1"


rule proposals_train:
    input:
        candidates="results/proposals/{model}/candidates.h5",
        annotations=of_fold("results/dataset/annotations.json"),
        code=step("proposals train"),
    output:
        evaluator="results/proposals/{model}/pem.pt",
        log="results/proposals/{model}/pem.tsv",
    log:
        "results/logs/proposals_train/{model}.log",
    benchmark:
        "results/benchmarks/proposals_train/{model}.tsv"
    group:
        "scoring"
    conda:
        "../../envs/environment.yaml"
    resources:
        runtime=minutes(120, "scoring"),
    params:
        settings=lambda wildcards: seeded_flags(
            config["proposals"]["evaluator"], wildcards.model
        ),
    shell:
        "python -m actionspan proposals train --candidates {input.candidates}"
        " --annotations {input.annotations} {params.settings}"
        " --out {output.evaluator} --out-log {output.log} > {log} 2>&1"


rule proposals_losses:
    input:
        log="results/proposals/{model}/pem.tsv",
        code=step("proposals losses"),
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
    shell:
        "python -m actionspan proposals losses --log {input.log} --out {output} > {log} 2>&1"


rule proposals_classifier:
    # Labels of proposals: trained once, for all models and baselines.
    input:
        features="results/features/{fold}features.h5",
        annotations="results/dataset/{fold}annotations.json",
        code=step("proposals classifier"),
    output:
        classifier="results/proposals/{fold}classifier.pt",
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
        settings=flags(config["proposals"]["classifier"]),
    shell:
        "python -m actionspan proposals classifier --features {input.features}"
        " --annotations {input.annotations} {params.settings}"
        " --out {output.classifier} --out-log {output.log} > {log} 2>&1"


rule proposals_generate:
    input:
        candidates="results/proposals/{model}/candidates.h5",
        evaluator="results/proposals/{model}/pem.pt",
        classifier=of_fold("results/proposals/classifier.pt"),
        features=of_fold("results/features/features.h5"),
        code=step("proposals generate"),
    output:
        json="results/proposals/{model}/proposals.json",
        csv="results/proposals/{model}/proposals.csv",
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
        runtime=minutes(60, "scoring"),
    params:
        settings=flags(
            {**config["proposals"]["ranking"], **config["proposals"]["suppression"]}
        ),
    shell:
        "python -m actionspan proposals generate --candidates {input.candidates}"
        " --evaluator {input.evaluator} --classifier {input.classifier}"
        " --features {input.features} {params.settings}"
        " --out-json {output.json} --out-csv {output.csv} > {log} 2>&1"


# The models span and stream: a density of instances in place of candidates, PEM and Soft-NMS.


rule proposals_density:
    input:
        probabilities=f"results/temporal/{{model}}/{plan.ranks.run}/probabilities.h5",
        annotations=of_fold("results/dataset/annotations.json"),
        code=step("proposals density"),
    output:
        "results/proposals/{model}/density.pt",
    log:
        "results/logs/proposals_density/{model}.log",
    benchmark:
        "results/benchmarks/proposals_density/{model}.tsv"
    group:
        "scoring"
    conda:
        "../../envs/environment.yaml"
    resources:
        mem_mb=4000,
        runtime=minutes(120, "scoring"),
    params:
        settings=plan.outcomes.density_flags,
    shell:
        "python -m actionspan proposals density --probabilities {input.probabilities}"
        " --annotations {input.annotations} {params.settings} --out {output} > {log} 2>&1"


rule proposals_select:
    input:
        probabilities=f"results/temporal/{{model}}/{plan.ranks.run}/probabilities.h5",
        density="results/proposals/{model}/density.pt",
        classifier=of_fold("results/proposals/classifier.pt"),
        features=of_fold("results/features/features.h5"),
        videos="results/dataset/videos.tsv",
        code=step("proposals select"),
    output:
        json="results/proposals/{model}/proposals.json",
        csv="results/proposals/{model}/proposals.csv",
        events="results/proposals/{model}/events.json",
        table="results/proposals/{model}/events.csv",
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
        runtime=minutes(120, "scoring"),
    params:
        settings=flags(
            {**config["proposals"]["selection"], **config["proposals"]["events"]}
        ),
    shell:
        "python -m actionspan proposals select --probabilities {input.probabilities}"
        " --density {input.density} --classifier {input.classifier}"
        " --features {input.features} {params.settings}"
        " --out-json {output.json} --out-csv {output.csv}"
        " --out-events-json {output.events} --out-events-csv {output.table}"
        " --videos {input.videos} > {log} 2>&1"


rule proposals_detections:
    input:
        proposals="results/proposals/{method}/proposals.json",
        features=of_fold("results/features/features.h5"),
        classifier=of_fold("results/proposals/classifier.pt"),
        code=step("proposals detections"),
    output:
        "results/proposals/{method}/detections.json",
    log:
        "results/logs/proposals_detections/{method}.log",
    wildcard_constraints:
        # joined folds have no classifier: each fold has its own
        method=seeded(METHODS) + plan.folds.one,
    group:
        "scoring"
    conda:
        "../../envs/environment.yaml"
    resources:
        runtime=minutes(10, "scoring"),
    params:
        settings=flags(config["proposals"]["detections"]),
    shell:
        "python -m actionspan proposals detections --proposals {input.proposals}"
        " --features {input.features} --classifier {input.classifier} {params.settings}"
        " --out {output} > {log} 2>&1"


rule proposals_chapters:
    input:
        proposals=plan.outcomes.listed,
        missing=plan.dataset.missing_video,
        code=step("proposals chapters"),
    output:
        expand(
            "results/proposals/{{model}}/chapters/{video}.vtt",
            video=plan.outcomes.chaptered,
        ),
    log:
        (
            "results/logs/proposals_chapters/{model}/{video}.log"
            if plan.outcomes.chaptered == ["{video}"]
            else "results/logs/proposals_chapters/{model}.log"
        ),
    group:
        "scoring"
    conda:
        "../../envs/environment.yaml"
    resources:
        runtime=minutes(5, "scoring"),
    params:
        # a flag each: an id may begin with a hyphen
        videos=[f"--videos={video}" for video in plan.outcomes.chaptered],
        folder=subpath(output[0], parent=True),
        settings=flags(config["proposals"]["chapters"]),
    shell:
        "python -m actionspan proposals chapters --proposals {input.proposals} {params.videos:q}"
        " {params.settings} --out-folder {params.folder} > {log} 2>&1"


rule proposals_bundle:
    # A file with all that `actionspan propose` needs, so that a model can be passed on.
    input:
        features=plan.outcomes.network_features,
        temporal=f"results/temporal/{{model}}/{plan.ranks.run}/model.pt",
        scorer=plan.outcomes.scorer,
        classifier=of_fold("results/proposals/classifier.pt"),
        classified=of_fold("results/features/features.h5"),
        code=step("proposals bundle"),
    output:
        "results/proposals/{model}/model.pt",
    log:
        "results/logs/proposals_bundle/{model}.log",
    group:
        "scoring"
    conda:
        "../../envs/environment.yaml"
    resources:
        runtime=minutes(5, "scoring"),
    params:
        scorer=plan.outcomes.bundle_flags,
    shell:
        "python -m actionspan proposals bundle --features {input.features} --temporal {input.temporal}"
        " {params.scorer} {input.scorer} --classifier {input.classifier} --classifier-features {input.classified}"
        " --out {output} > {log} 2>&1"
