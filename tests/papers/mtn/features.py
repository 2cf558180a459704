"""A features.h5 that says what it holds, and holds nothing."""

import h5py


def write_features(folder, description, data):
    """Write its attributes alone."""
    path = folder / "features.h5"
    with h5py.File(path, "w") as file:
        file.attrs.update(description=description, data=data)
    return path
