"""Image and clip networks with their public weights; they know nothing of files of videos."""
