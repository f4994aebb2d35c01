"""The command ``difflab bench``."""
