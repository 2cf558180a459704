# The code of the steps that run once a shard, in a file for each step.


rule code:
    # Thousands of jobs with dozens of modules each as inputs would be slow to plan.
    input:
        lambda wildcards: step(wildcards.step.replace("_", " ")),
    output:
        "results/code/{step}.txt",
    log:
        "results/logs/code/{step}.log",
    wildcard_constraints:
        step="[a-z]+_[a-z]+",
    localrule: True
    conda:
        "../../envs/environment.yaml"
    shell:
        "sha256sum {input} > {output} 2> {log}"
