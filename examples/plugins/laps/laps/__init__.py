"""An example of each plug-in: a network, a format, an encoder and steps."""
