"""How Sphinx builds the documentation: ``sphinx-build -W docs build/docs``."""

import importlib.metadata
import inspect
import sys
import types
import warnings
from pathlib import Path

from docutils import nodes
from latex2mathml.converter import convert

import pairgram

# A machine that builds pages has other things to do, which says nothing about a budget.
warnings.filterwarnings("ignore", message="the trials took more than")
sys.path.insert(0, str(Path(__file__).parent))

# The page of pairgram.pyterrier.Ranker needs the name of its base alone, and PyTerrier needs Java.
sys.modules["pyterrier"] = types.ModuleType("pyterrier")
sys.modules["pyterrier"].Estimator = type("Estimator", (), {})

project = "pairgram"
author = "The pairgram developers"
copyright = "The pairgram developers"
release = pairgram.__version__
version = ".".join(release.split(".")[:2])

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "whole_entries",
]
exclude_patterns = ["examples/*", "requirements.txt"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
nitpicky = False

# The long form of the checks looks other projects' pages up; the quick one works without a network.
intersphinx_mapping = {}
if "external" in globals().get("tags", ()):
    intersphinx_mapping = {
        "numpy": ("https://numpy.org/doc/stable", None),
        "scipy": ("https://docs.scipy.org/doc/scipy", None),
        "sklearn": ("https://scikit-learn.org/stable", None),
    }

default_role = "py:obj"
toc_object_entries_show_parents = "hide"
autodoc_typehints = "none"
autosummary_generate = True
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
templates_path = ["_templates"]

html_theme = "pydata_sphinx_theme"
html_title = "pairgram"
html_static_path = ["_static"]
html_css_files = ["pairgram.css"]
html_math_renderer = "mathml"
html_show_sourcelink = False
copybutton_prompt_text = "$ "
html_theme_options = {
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "show_nav_level": 2,
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
urls = importlib.metadata.metadata("pairgram").get_all("Project-URL") or []
html_theme_options["external_links"] = [
    {"name": name, "url": url} for name, url in (url.split(", ") for url in urls)
]
html_sidebars = {page: [] for page in ("index", "start", "which", "questions", "mathematics")}

sphinx_gallery_conf = {
    "examples_dirs": str(Path(__file__).parent / "examples"),
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 1e9,
    "plot_gallery": True,
    "capture_repr": (),
    "image_scrapers": ("matplotlib",),
    "reset_modules": ("matplotlib",),
    "matplotlib_animations": False,
    "within_subsection_order": "FileNameSortKey",
}


def _math(translator, node):
    """Write a formula as MathML, which browsers show without a script."""
    is_block = isinstance(node, nodes.math_block)
    formula = convert(node.astext().strip(), display="block" if is_block else "inline")
    translator.body.append(f'<div class="formula">{formula}</div>' if is_block else formula)
    raise nodes.SkipNode


def _no_mail(app, doctree):
    """Take away links of mail: docutils makes them of the names of metrics, such as ndcg@10."""
    for link in list(doctree.findall(nodes.reference)):
        if link.get("refuri", "").startswith("mailto:"):
            link.replace_self(link.children)


def _signature(app, what, name, obj, options, signature, returned):
    """Show the parameters of estimators, whose `__new__` takes any so that it can explain them."""
    if what == "class" and "*args" in (signature or ""):
        own = inspect.signature(obj)
        plain = [one.replace(annotation=one.empty) for one in own.parameters.values()]
        signature = str(own.replace(parameters=plain, return_annotation=own.empty))
    return signature, returned


def setup(app):
    """Register the writer of formulas, and what changes pages."""
    app.add_html_math_renderer("mathml", (_math, None), (_math, None))
    app.connect("doctree-read", _no_mail)
    app.connect("autodoc-process-signature", _signature)
