"""The video stage: each file decoded once into snippets, and their optical flow."""
