"""The video stage: snippets of RGB and grey frames from one decoding in order; optical flow."""
