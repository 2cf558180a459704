"""Paper 003: figures, tables and claims of model averaging."""
