# Training times of several exchanges and numbers of ranks → paper 000's fits and verdicts.


rule ring_figures:
    input:
        expand(
            "results/papers/ring/{name}.{suffix}",
            name=["fits", "claims"],
            suffix=["tsv", "md"],
        ),
        expand(
            "results/scaling/{figure}.{suffix}",
            figure=["speedup", "fit"],
            suffix=["svg", "png"],
        ),


rule papers_ring_fits:
    input:
        times="results/scaling/times.tsv",
        code=step("papers ring fits"),
    output:
        tsv="results/papers/ring/fits.tsv",
        markdown="results/papers/ring/fits.md",
    log:
        "results/logs/papers_ring_fits.log",
    conda:
        "../../envs/environment.yaml"
    resources:
        runtime=minutes(60),
    shell:
        "python -m actionspan papers ring fits --times {input.times} --out-tsv {output.tsv}"
        " --out-markdown {output.markdown} > {log} 2>&1"


rule papers_ring_claims:
    input:
        times="results/scaling/times.tsv",
        code=step("papers ring claims"),
    output:
        tsv="results/papers/ring/claims.tsv",
        markdown="results/papers/ring/claims.md",
    log:
        "results/logs/papers_ring_claims.log",
    conda:
        "../../envs/environment.yaml"
    resources:
        runtime=minutes(60),
    shell:
        "python -m actionspan papers ring claims --times {input.times} --out-tsv {output.tsv}"
        " --out-markdown {output.markdown} > {log} 2>&1"
