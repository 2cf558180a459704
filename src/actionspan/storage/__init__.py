"""Files: atomic writes and safe reads of HDF5, torch, JSON, text and figures."""
