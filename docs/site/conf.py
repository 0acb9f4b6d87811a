"""Sphinx's settings. Nothing here or in the theme loads anything from another host; tests/site looks."""

from __future__ import annotations

import queueduct

project = "queueduct"
version = release = queueduct.__version__
author = copyright = "the queueduct authors"
html_title = f"queueduct {version}"

extensions = ["myst_parser"]
myst_enable_extensions = ["colon_fence", "deflist", "attrs_block"]
myst_heading_anchors = 4
root_doc = "index"

python_maximum_signature_line_length = 88
add_module_names = False
toc_object_entries_show_parents = "hide"

html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True}
pygments_style = "friendly"
pygments_dark_style = "github-dark"
