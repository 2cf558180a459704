"""The features stage: two-stream features of snippets, rescaled to a fixed number of steps."""
