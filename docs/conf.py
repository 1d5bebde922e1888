"""The site: `make docs`."""

from importlib.metadata import version as version_of

from sphinx_gallery.scrapers import figure_rst

project = "hiddenmanifold"
author = "the hiddenmanifold developers"
project_copyright = author
version = release = version_of(project)

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "sphinx-mathjax-offline",
]
exclude_patterns = ["_build"]
suppress_warnings = ["config.cache"]  # a function among the options of the gallery
myst_enable_extensions = ["dollarmath", "amsmath", "attrs_inline"]
myst_heading_anchors = 3
highlight_language = "none"

# docstrings name types in words, and names of the package in single backticks
default_role = "code"
autodoc_typehints = "none"
autodoc_inherit_docstrings = False  # what only fills in an interface is described where that is
autodoc_member_order = "bysource"
autosummary_generate = False
numpydoc_show_class_members = False

mathjax3_config = {"chtml": {"scale": 0.92}}

html_theme = "pydata_sphinx_theme"
html_title = "hiddenmanifold"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_context = {"default_mode": "auto"}  # light or dark, as the reader's system
# pages of no section: a column of links beside them would be empty
html_sidebars = {name: [] for name in ("index", "getting_started", "explore", "gallery/index")}
toc_object_entries_show_parents = "hide"  # names that fit beside the page
html_theme_options = {
    "header_links_before_dropdown": 8,
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "show_prev_next": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}


def last_figure(block, block_vars, gallery_conf):
    """The picture of a block whose last line is a figure, as a notebook would show it."""
    figure = block_vars["example_globals"].get("___")
    if not hasattr(figure, "savefig"):
        return ""
    path = next(block_vars["image_path_iterator"])
    figure.savefig(path, dpi=150)
    return figure_rst([path], gallery_conf["src_dir"])


sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "download_all_examples": False,
    "show_signature": False,
    "write_computation_times": False,
    "within_subsection_order": "FileNameSortKey",
    "remove_config_comments": True,
    "min_reported_time": 1000,
    "abort_on_example_error": True,
    "run_stale_examples": True,
    "capture_repr": (),
    "image_scrapers": ("matplotlib", last_figure),
}


def setup(app):
    """Of the modules of ingredients, document the classes."""
    app.connect(
        "autodoc-skip-member",
        lambda app, what, name, item, skip, options: (
            skip or (what == "module" and not isinstance(item, type))
        ),
    )
