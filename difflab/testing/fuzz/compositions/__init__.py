"""Random compositions of each package's own transforms: `difflab fuzz --compositions`."""
