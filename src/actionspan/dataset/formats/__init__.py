"""Forms of annotations, a file each."""
