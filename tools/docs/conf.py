"""Sphinx' settings of the site. tools/docs/build runs it on pages that it has gathered."""
import os
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]

project = "stoker"
copyright = ""
version = release = re.search(r"stoker VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text(encoding="utf-8"))[1]
html_title = f"stoker {version}"

extensions = ["myst_parser", "breathe"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["extra"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 6  # as code-hosting sites make them
myst_url_schemes = {"http": None, "https": None, "mailto": None, "here": None}
# READMEs may begin below their first level; each header of ours opens the namespace again.
suppress_warnings = ["misc.highlighting_failure", "myst.header", "duplicate_declaration.cpp"]
highlight_language = "text"

breathe_projects = {"stoker": os.environ.get("STOKER_DOXYGEN", "")}
breathe_default_project = "stoker"

html_theme = "furo"
html_static_path = [str(ROOT / "tools/docs/static")]
html_css_files = ["site.css"]
html_extra_path = [os.environ.get("STOKER_DOCS_EXTRA", "")]
html_sourcelink_suffix = ""
html_show_sphinx = False
html_show_copyright = False
html_theme_options = {"navigation_with_keys": False, "top_of_page_buttons": []}
