"""Plots: own how figures look: arrays in, figures out.

Matplotlib is imported by the function that draws, and pyplot by none. `style` has sizes, panels, texts that
are never cut and files; `curves` what many runs give; `plan` what one plan or one agent is.
"""

from .curves import Curve, Growth, Line, draw_against, draw_curves, draw_growth
from .plan import draw_beliefs, draw_plan
from .style import COLUMN, FONT, PAGE, SMALL, page_paths, pages, picture_path, save, save_pages

__all__ = [
    "COLUMN",
    "FONT",
    "PAGE",
    "SMALL",
    "Curve",
    "Growth",
    "Line",
    "draw_against",
    "draw_beliefs",
    "draw_curves",
    "draw_growth",
    "draw_plan",
    "page_paths",
    "pages",
    "picture_path",
    "save",
    "save_pages",
]
