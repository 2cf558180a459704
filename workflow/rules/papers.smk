# Runs of several seeds → the papers' tables, figures and verdicts on their claims.

from actionspan_papers.aavg import targets as aavg
from actionspan_papers.aavg.comparisons import curve_figures
from actionspan_papers.mtn import targets as mtn

INTERVAL = ("resamples", "confidence", "seed")
EXPERIMENT_INTERVAL = flags(
    config["recognition"]["experiments"], "confidence", "resamples"
)


rule tables:
    input:
        expand(
            "results/papers/mtn/{name}.{suffix}",
            name=["table1", "table2", "table3", "claims"],
            suffix=["tsv", "md"],
        ),
        multiext("results/papers/mtn/loss_curves", ".tsv", ".md", ".svg", ".png"),


rule recognition_figures:
    input:
        expand(
            "results/papers/aavg/{name}.{suffix}",
            name=[*curve_figures(), "learning_rates"],
            suffix=["tsv", "md", "svg", "png"],
        ),
        expand(
            "results/papers/aavg/{name}.{suffix}",
            name=["table1", "traffic", "times", "claims"],
            suffix=["tsv", "md"],
        ),


rule papers_mtn_table:
    input:
        videos=lambda wildcards: mtn.table_scores(config, wildcards.table),
        features="results/features/features.h5",
        code=step("papers mtn table"),
    output:
        tsv="results/papers/mtn/{table,table[123]}.tsv",
        markdown="results/papers/mtn/{table,table[123]}.md",
    log:
        "results/logs/papers_mtn_table/{table}.log",
    conda:
        "../../envs/environment.yaml"
    resources:
        runtime=minutes(60),
    params:
        settings=flags(config["evaluation"]["protocol"], *INTERVAL),
        subset=config["evaluation"]["subset"],
    shell:
        "python -m actionspan papers mtn table --table {wildcards.table} --videos {input.videos}"
        " --features {input.features} --subset {params.subset} {params.settings}"
        " --out-tsv {output.tsv} --out-markdown {output.markdown} > {log} 2>&1"


rule papers_mtn_claims:
    input:
        videos=mtn.claim_scores(config),
        logs=mtn.loss_logs(config),
        features="results/features/features.h5",
        code=step("papers mtn claims"),
    output:
        tsv="results/papers/mtn/claims.tsv",
        markdown="results/papers/mtn/claims.md",
    log:
        "results/logs/papers_mtn_claims.log",
    conda:
        "../../envs/environment.yaml"
    resources:
        runtime=minutes(60),
    params:
        settings=flags(config["evaluation"]["protocol"], *INTERVAL),
        subset=config["evaluation"]["subset"],
    shell:
        "python -m actionspan papers mtn claims --videos {input.videos} --logs {input.logs}"
        " --features {input.features} --subset {params.subset} {params.settings}"
        " --out-tsv {output.tsv} --out-markdown {output.markdown} > {log} 2>&1"


rule papers_mtn_loss_curves:
    input:
        logs=mtn.loss_logs(config),
        features="results/features/features.h5",
        code=step("papers mtn loss-curves"),
    output:
        tsv="results/papers/mtn/loss_curves.tsv",
        markdown="results/papers/mtn/loss_curves.md",
        figures=figure_files(
            "results/papers/mtn/loss_curves", "mtn_loss_curves", "Paper 001: MTN"
        ),
    log:
        "results/logs/papers_mtn_loss_curves.log",
    conda:
        "../../envs/environment.yaml"
    resources:
        runtime=minutes(60),
    params:
        settings=flags(config["evaluation"]["protocol"], *INTERVAL),
    shell:
        "python -m actionspan papers mtn loss-curves --logs {input.logs}"
        " --features {input.features} {params.settings} --out-tsv {output.tsv}"
        " --out-markdown {output.markdown} --out-figures {output.figures} > {log} 2>&1"


rule papers_aavg_curves:
    input:
        logs=lambda wildcards: aavg.figure_logs(config, wildcards.figure),
        scores=lambda wildcards: aavg.trained_as(
            aavg.figure_logs(config, wildcards.figure)
        ),
        code=step("papers aavg curves"),
    output:
        tsv="results/papers/aavg/{figure}.tsv",
        markdown="results/papers/aavg/{figure}.md",
        figures=figure_files(
            "results/papers/aavg/{figure}", "aavg_curves", "Paper 003: AAVG"
        ),
    log:
        "results/logs/papers_aavg_curves/{figure}.log",
    wildcard_constraints:
        figure=one_of(curve_figures()),
    conda:
        "../../envs/environment.yaml"
    resources:
        runtime=minutes(60),
    params:
        settings=EXPERIMENT_INTERVAL,
    shell:
        "python -m actionspan papers aavg curves --figure {wildcards.figure} --logs {input.logs}"
        " --scores {input.scores} {params.settings} --out-tsv {output.tsv} --out-markdown {output.markdown}"
        " --out-figures {output.figures} > {log} 2>&1"


rule papers_aavg_rates:
    input:
        logs=aavg.rate_logs(config),
        scores=aavg.trained_as(aavg.rate_logs(config)),
        code=step("papers aavg rates"),
    output:
        tsv="results/papers/aavg/learning_rates.tsv",
        markdown="results/papers/aavg/learning_rates.md",
        figures=figure_files(
            "results/papers/aavg/learning_rates",
            "aavg_learning_rates",
            "Paper 003: AAVG",
        ),
    log:
        "results/logs/papers_aavg_rates.log",
    conda:
        "../../envs/environment.yaml"
    resources:
        runtime=minutes(60),
    params:
        settings=EXPERIMENT_INTERVAL,
    shell:
        "python -m actionspan papers aavg rates --logs {input.logs} --scores {input.scores}"
        " {params.settings} --out-tsv {output.tsv} --out-markdown {output.markdown}"
        " --out-figures {output.figures} > {log} 2>&1"


rule papers_aavg_table:
    input:
        scores=aavg.variant_scores(config),
        code=step("papers aavg table"),
    output:
        tsv="results/papers/aavg/table1.tsv",
        markdown="results/papers/aavg/table1.md",
    log:
        "results/logs/papers_aavg_table.log",
    conda:
        "../../envs/environment.yaml"
    resources:
        runtime=minutes(60),
    params:
        settings=EXPERIMENT_INTERVAL,
    shell:
        "python -m actionspan papers aavg table --scores {input.scores} {params.settings}"
        " --out-tsv {output.tsv} --out-markdown {output.markdown} > {log} 2>&1"


rule papers_aavg_traffic:
    input:
        logs=aavg.compared_files(config, "log.tsv"),
        scores=aavg.compared_files(config, "scores.json")[0],
        code=step("papers aavg traffic"),
    output:
        tsv="results/papers/aavg/traffic.tsv",
        markdown="results/papers/aavg/traffic.md",
    log:
        "results/logs/papers_aavg_traffic.log",
    conda:
        "../../envs/environment.yaml"
    resources:
        runtime=minutes(60),
    params:
        settings=EXPERIMENT_INTERVAL,
    shell:
        "python -m actionspan papers aavg traffic --logs {input.logs} --scores {input.scores}"
        " {params.settings} --out-tsv {output.tsv} --out-markdown {output.markdown} > {log} 2>&1"


rule papers_aavg_times:
    input:
        logs=aavg.compared_files(config, "log.tsv"),
        scores=aavg.compared_files(config, "scores.json")[0],
        code=step("papers aavg times"),
    output:
        tsv="results/papers/aavg/times.tsv",
        markdown="results/papers/aavg/times.md",
    log:
        "results/logs/papers_aavg_times.log",
    conda:
        "../../envs/environment.yaml"
    resources:
        runtime=minutes(60),
    params:
        settings=EXPERIMENT_INTERVAL,
    shell:
        "python -m actionspan papers aavg times --logs {input.logs} --scores {input.scores}"
        " {params.settings} --out-tsv {output.tsv} --out-markdown {output.markdown} > {log} 2>&1"


rule papers_aavg_claims:
    input:
        logs=aavg.compared_files(config, "log.tsv"),
        scores=aavg.compared_files(config, "scores.json"),
        code=step("papers aavg claims"),
    output:
        tsv="results/papers/aavg/claims.tsv",
        markdown="results/papers/aavg/claims.md",
    log:
        "results/logs/papers_aavg_claims.log",
    conda:
        "../../envs/environment.yaml"
    resources:
        runtime=minutes(60),
    params:
        settings=EXPERIMENT_INTERVAL,
    shell:
        "python -m actionspan papers aavg claims --logs {input.logs} --scores {input.scores}"
        " {params.settings} --out-tsv {output.tsv} --out-markdown {output.markdown} > {log} 2>&1"
