"""Configuration of the documentation: ``sphinx-build -W -b html docs docs/_build``."""

from importlib.resources import files

import difflab

project = "difflab"
author = "the difflab developers"
copyright = author
release = version = difflab.__version__

extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
]
# MyST-NB writes `jupyter_execute` beside the folder of the pages.
exclude_patterns = ["_build", "jupyter_execute"]
html_theme = "furo"
html_title = f"difflab {version}"
# MathJax is a file of the documentation, which opens without a network; as SVG it needs no fonts.
mathjax_path = "tex-svg.js"
html_static_path = [
    "_static/pictures.css",
    str(files("sphinx-mathjax-offline") / "static" / "mathjax" / mathjax_path),
]
html_css_files = ["pictures.css"]

myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3
# The notebooks are committed as they were executed, and the tests execute them again.
nb_execution_mode = "off"

# Names in single quotation marks are code of the language, not references.
default_role = "code"
autodoc_typehints = "none"
autodoc_member_order = "bysource"
# Defaults as they are written: `float64`, not `<class 'numpy.float64'>`.
autodoc_preserve_defaults = True
numpydoc_show_class_members = False
