"""Random programs of the language, differentiated by every method and package: `difflab fuzz`."""
