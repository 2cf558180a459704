# Stored snippets and rendered clips → paper 004's (SBP) tables, figures and verdicts.

SBP = config["papers"]["sbp"]
SBP_SEEDS = flags(SBP, "seeds", "confidence", "resamples")
SBP_DATA = {
    "snippets": expand(
        "results/finetune/snippets/{shard}.h5", shard=plan.dataset.shards
    ),
    "annotations": "results/dataset/annotations.json",
}


rule sbp_figures:
    input:
        expand(
            "results/papers/sbp/{name}.{suffix}",
            name=["table1", "table2", "table3", "table4", "table5", "claims"],
            suffix=["tsv", "md"],
        ),
        expand(
            "results/papers/sbp/{name}.{suffix}",
            name=["figure1", "figure4", "figure6", "gradients"],
            suffix=["tsv", "md", "svg", "png"],
        ),
        multiext("results/finetune/measurements", ".tsv", ".md", ".svg", ".png"),


rule papers_sbp_table1:
    input:
        table3="results/papers/sbp/table3.tsv",
        code=step("papers sbp table1"),
    output:
        tsv="results/papers/sbp/table1.tsv",
        markdown="results/papers/sbp/table1.md",
    log:
        "results/logs/papers_sbp_table1.log",
    conda:
        "../../envs/environment.yaml"
    resources:
        runtime=minutes(60),
    shell:
        "python -m actionspan papers sbp table1 --table3 {input.table3} --out-tsv {output.tsv}"
        " --out-markdown {output.markdown} > {log} 2>&1"


rule papers_sbp_table2:
    input:
        code=step("papers sbp table2"),
    output:
        tsv="results/papers/sbp/table2.tsv",
        markdown="results/papers/sbp/table2.md",
    log:
        "results/logs/papers_sbp_table2.log",
    conda:
        "../../envs/environment.yaml"
    resources:
        runtime=minutes(60),
    shell:
        "python -m actionspan papers sbp table2 --out-tsv {output.tsv}"
        " --out-markdown {output.markdown} > {log} 2>&1"


rule papers_sbp_table3:
    input:
        code=step("papers sbp table3"),
    output:
        tsv="results/papers/sbp/table3.tsv",
        markdown="results/papers/sbp/table3.md",
        networks="results/papers/sbp/transformers.pt",
    log:
        "results/logs/papers_sbp_table3.log",
    conda:
        "../../envs/environment.yaml"
    resources:
        runtime=minutes(120),
    params:
        seeds=SBP_SEEDS,
        settings=flags(SBP["transformer"]),
    shell:
        "python -m actionspan papers sbp table3 {params.seeds} {params.settings}"
        " --out-tsv {output.tsv} --out-markdown {output.markdown} --out-networks {output.networks}"
        " > {log} 2>&1"


rule papers_sbp_table4:
    input:
        **SBP_DATA,
        code=step("papers sbp table4"),
    output:
        tsv="results/papers/sbp/table4.tsv",
        markdown="results/papers/sbp/table4.md",
    log:
        "results/logs/papers_sbp_table4.log",
    benchmark:
        "results/benchmarks/papers_sbp_table4.tsv"
    conda:
        "../../envs/environment.yaml"
    resources:
        mem_mb=4000,
        runtime=minutes(720),
    params:
        seeds=SBP_SEEDS,
        tuning=flags(SBP["tuning"]),
        settings=flags(SBP["detection"], "online_ratios"),
    shell:
        "python -m actionspan papers sbp table4 --snippets {input.snippets}"
        " --annotations {input.annotations} {params.seeds} {params.tuning} {params.settings}"
        " --out-tsv {output.tsv} --out-markdown {output.markdown} > {log} 2>&1"


rule papers_sbp_table5:
    input:
        **SBP_DATA,
        videos="results/dataset/videos.tsv",
        code=step("papers sbp table5"),
    output:
        tsv="results/papers/sbp/table5.tsv",
        markdown="results/papers/sbp/table5.md",
    log:
        "results/logs/papers_sbp_table5.log",
    benchmark:
        "results/benchmarks/papers_sbp_table5.tsv"
    conda:
        "../../envs/environment.yaml"
    resources:
        mem_mb=4000,
        runtime=minutes(720),
    params:
        seeds=SBP_SEEDS,
        tuning=flags(SBP["tuning"]),
        settings=flags(SBP["detection"], "ratios", "importance_ratio"),
    shell:
        "python -m actionspan papers sbp table5 --snippets {input.snippets}"
        " --annotations {input.annotations} --videos {input.videos} {params.seeds} {params.tuning}"
        " {params.settings} --out-tsv {output.tsv} --out-markdown {output.markdown} > {log} 2>&1"


rule papers_sbp_figure6:
    input:
        **SBP_DATA,
        code=step("papers sbp figure6"),
    output:
        tsv="results/papers/sbp/figure6.tsv",
        markdown="results/papers/sbp/figure6.md",
        figures=figure_files(
            "results/papers/sbp/figure6", "sbp_figure6", "Paper 004: SBP"
        ),
    log:
        "results/logs/papers_sbp_figure6.log",
    benchmark:
        "results/benchmarks/papers_sbp_figure6.tsv"
    conda:
        "../../envs/environment.yaml"
    resources:
        mem_mb=4000,
        runtime=minutes(720),
    params:
        seeds=SBP_SEEDS,
        tuning=flags(SBP["tuning"]),
        settings=flags(SBP["detection"], "shares", "figure_ratio"),
    shell:
        "python -m actionspan papers sbp figure6 --snippets {input.snippets}"
        " --annotations {input.annotations} {params.seeds} {params.tuning} {params.settings}"
        " --out-tsv {output.tsv} --out-markdown {output.markdown} --out-figures {output.figures}"
        " > {log} 2>&1"


rule papers_sbp_gradients:
    input:
        **SBP_DATA,
        code=step("papers sbp gradients"),
    output:
        tsv="results/papers/sbp/gradients.tsv",
        markdown="results/papers/sbp/gradients.md",
        figures=figure_files(
            "results/papers/sbp/gradients", "sbp_gradients", "Paper 004: SBP"
        ),
    log:
        "results/logs/papers_sbp_gradients.log",
    conda:
        "../../envs/environment.yaml"
    resources:
        mem_mb=4000,
        runtime=minutes(120),
    params:
        seeds=SBP_SEEDS,
        settings=flags(SBP["gradients"]),
    shell:
        "python -m actionspan papers sbp gradients --snippets {input.snippets}"
        " --annotations {input.annotations} {params.seeds} {params.settings}"
        " --out-tsv {output.tsv} --out-markdown {output.markdown} --out-figures {output.figures}"
        " > {log} 2>&1"


rule papers_sbp_figure1:
    input:
        networks="results/papers/sbp/transformers.pt",
        code=step("papers sbp figure1"),
    output:
        tsv="results/papers/sbp/figure1.tsv",
        markdown="results/papers/sbp/figure1.md",
        figures=figure_files(
            "results/papers/sbp/figure1", "sbp_figure1", "Paper 004: SBP"
        ),
    log:
        "results/logs/papers_sbp_figure1.log",
    conda:
        "../../envs/environment.yaml"
    resources:
        runtime=minutes(60),
    shell:
        "python -m actionspan papers sbp figure1 --networks {input.networks}"
        " --out-tsv {output.tsv} --out-markdown {output.markdown} --out-figures {output.figures}"
        " > {log} 2>&1"


rule papers_sbp_figure4:
    input:
        networks="results/papers/sbp/transformers.pt",
        code=step("papers sbp figure4"),
    output:
        tsv="results/papers/sbp/figure4.tsv",
        markdown="results/papers/sbp/figure4.md",
        figures=figure_files(
            "results/papers/sbp/figure4", "sbp_figure4", "Paper 004: SBP"
        ),
    log:
        "results/logs/papers_sbp_figure4.log",
    conda:
        "../../envs/environment.yaml"
    resources:
        runtime=minutes(60),
    shell:
        "python -m actionspan papers sbp figure4 --networks {input.networks}"
        " --out-tsv {output.tsv} --out-markdown {output.markdown} --out-figures {output.figures}"
        " > {log} 2>&1"


rule papers_sbp_claims:
    input:
        **{
            name: f"results/papers/sbp/{name}.tsv"
            for name in [
                "table1",
                "table2",
                "table3",
                "table4",
                "table5",
                "figure1",
                "figure4",
                "figure6",
                "gradients",
            ]
        },
        measurements="results/finetune/measurements.tsv",
        code=step("papers sbp claims"),
    output:
        tsv="results/papers/sbp/claims.tsv",
        markdown="results/papers/sbp/claims.md",
    log:
        "results/logs/papers_sbp_claims.log",
    conda:
        "../../envs/environment.yaml"
    resources:
        runtime=minutes(60),
    params:
        seeds=SBP_SEEDS,
        margin=flags(SBP["transformer"], "margin"),
    shell:
        "python -m actionspan papers sbp claims --table1 {input.table1} --table2 {input.table2} --table3 {input.table3}"
        " --table4 {input.table4} --table5 {input.table5} --figure1 {input.figure1}"
        " --figure4 {input.figure4} --figure6 {input.figure6} --gradients {input.gradients}"
        " --measurements {input.measurements} {params.seeds} {params.margin}"
        " --out-tsv {output.tsv} --out-markdown {output.markdown} > {log} 2>&1"


rule finetune_measure:
    input:
        code=step("finetune measure"),
    output:
        tsv="results/finetune/measurements.tsv",
        markdown="results/finetune/measurements.md",
        figures=figure_files(
            "results/finetune/measurements", "finetune_measurements", "Training"
        ),
    log:
        "results/logs/finetune_measure.log",
    conda:
        "../../envs/environment.yaml"
    resources:
        mem_mb=8000,
        runtime=minutes(60),
    params:
        settings=flags(config["finetune"]["measure"]),
    shell:
        "python -m actionspan finetune measure {params.settings} --out-tsv {output.tsv}"
        " --out-markdown {output.markdown} --out-figures {output.figures} > {log} 2>&1"
