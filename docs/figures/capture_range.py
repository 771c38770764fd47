"""Draw capture_range.svg: where decos, cos and recos are exactly 1 against one fixed vector.

Run ``python docs/figures/capture_range.py``. The same versions write the same bytes.
"""

from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import BoundaryNorm, LinearSegmentedColormap
from matplotlib.patches import Patch, Polygon

from recos import cos, decos, recos

INK, PAPER = "#1f2430", "#ffffff"
ONE, MINUS_ONE = "#fdb913", "#3d1152"
BANDS = np.linspace(-1, 1, 21)  # bands of one colour each keep the file small
COLOURS = LinearSegmentedColormap.from_list(
    "scores", ["#8757a0", "#cdb9d8", "#f6f5f3", "#b3d3e6", "#2f7fb0"], N=len(BANDS) - 1
)
LEVELS = [-0.9, -0.5, 0.0, 0.5, 0.9]
REACH = 3.4
PIXELS = 280


def draw_scores(ax: Axes, scores: Any, reach: float, levels: list[float] = LEVELS) -> None:
    """Colour the square [-reach, reach]^2 by score and draw some level lines."""
    ax.imshow(
        scores,
        cmap=COLOURS,
        norm=BoundaryNorm(BANDS, COLOURS.N),
        extent=(-reach, reach, -reach, reach),
        origin="lower",
        interpolation="none",
    )
    ticks = np.linspace(-reach, reach, PIXELS)
    unsaturated = np.where(np.abs(scores) < 1 - 1e-9, scores, np.nan)
    ax.contour(ticks, ticks, unsaturated, levels, colors=INK, linewidths=0.5, linestyles="solid")


def label_level(ax: Axes, x: float, y: float, text: str) -> None:
    box = {"boxstyle": "round,pad=0.15", "fc": PAPER, "ec": "none", "alpha": 0.75}
    text = text.replace("-", "\N{MINUS SIGN}")
    ax.text(x, y, text, fontsize=8.5, ha="center", va="center", bbox=box)


def fill(ax: Axes, polygon: Any, colour: str) -> None:
    ax.add_patch(Polygon(polygon, fc=colour, ec=INK, lw=1.0, zorder=3))


def corners(points: Any) -> Any:
    """Complex numbers as rows (x, y)."""
    return np.column_stack([np.real(points), np.imag(points)])


def mark(ax: Axes, at: Any, name: str, colour: str, offset: tuple[float, float] = (8, -5)) -> None:
    ax.plot(*at, "o", ms=8.5, color=colour, mec=INK, mew=1.2, zorder=5)
    ax.annotate(name, at, offset, textcoords="offset points", fontsize=13, zorder=6)


def plane(ax: Axes, title: str) -> None:
    ax.set_title(title, pad=8)
    ax.set(xlim=(-REACH, REACH), ylim=(-REACH, REACH))
    ax.set(xticks=[-2, 0, 2], yticks=[-2, 0, 2])
    ax.set_xlabel("$v_1$", labelpad=1)
    ax.set_ylabel("$v_2$", labelpad=-2)


def planes(decos_ax: Axes, cos_ax: Axes, recos_ax: Axes) -> None:
    """Every v in the plane against u = (1, 2)."""
    u = np.array([1.0, 2.0])
    ticks = np.linspace(-REACH, REACH, PIXELS)
    v = np.stack(np.meshgrid(ticks, ticks), axis=-1)

    plane(decos_ax, "decos = 1: one point")
    draw_scores(decos_ax, decos(u, v), REACH)
    for x, y, text in [(1, 0.92, "0.9"), (2.3, 0.16, "0.5"), (2.2, -1.1, "0")]:
        label_level(decos_ax, x, y, text)
    for x, y, text in [(-1, -0.92, "-0.9"), (-2.3, -0.16, "-0.5")]:
        label_level(decos_ax, x, y, text)
    mark(decos_ax, -u, "$-u$", MINUS_ONE)
    mark(decos_ax, u, "$u$", ONE)

    plane(cos_ax, "cos = 1: one ray")
    draw_scores(cos_ax, cos(u, v), REACH)
    for x, y, text in [(2.3, 1.72, "0.9"), (2.3, 0.14, "0.5"), (2.2, -1.1, "0")]:
        label_level(cos_ax, x, y, text)
    for x, y, text in [(-2.3, -1.72, "-0.9"), (-2.3, -0.14, "-0.5")]:
        label_level(cos_ax, x, y, text)
    end = REACH / 2 * u
    for sign, colour in [(1, ONE), (-1, MINUS_ONE)]:
        cos_ax.plot(*np.outer(sign * end, [0, 1]), color=INK, lw=5.5, solid_capstyle="butt")
        cos_ax.plot(*np.outer(sign * end, [0, 1]), color=colour, lw=3.5, solid_capstyle="butt")
    mark(cos_ax, u, "$u$", ONE)

    plane(recos_ax, "recos = 1: a whole cone")
    draw_scores(recos_ax, recos(u, v), REACH)
    for x, y, text in [(2.6, 1.84, "0.9"), (2.3, 0.0, "0.5")]:
        label_level(recos_ax, x, y, text)
    for x, y, text in [(-2.6, -1.84, "-0.9"), (-2.3, 0.0, "-0.5")]:
        label_level(recos_ax, x, y, text)
    # The cone is v_1 <= v_2 cut off where u . v = 0.
    cone = REACH * np.array([(0, 0), (1, 1), (-1, 1), (-1, 0.5)])
    fill(recos_ax, cone, ONE)
    fill(recos_ax, -cone, MINUS_ONE)
    mark(recos_ax, u, "$u$", PAPER)
    one, minus_one = "$v_1 \\leq v_2$\n$u\\cdot v > 0$", "$v_1 \\geq v_2$\n$u\\cdot v < 0$"
    recos_ax.text(-1.1, 2.1, one, ha="center", va="center", zorder=6)
    recos_ax.text(1.1, -2.1, minus_one, ha="center", va="center", color=PAPER, zorder=6)


def sphere(ax: Axes) -> None:
    """Every direction v of R^3 whose entries sum to a positive number, against u = (1, 2, 4)."""
    u = np.array([1.0, 2.0, 4.0])
    # Axes of the view: right, up, towards the reader. The six orders are its six sectors.
    view = np.array([(-1.0, 1.0, 0.0), (-1.0, -1.0, 2.0), (1.0, 1.0, 1.0)])
    view /= np.linalg.norm(view, axis=1, keepdims=True)
    x, y = np.meshgrid(np.linspace(-1, 1, PIXELS), np.linspace(-1, 1, PIXELS))
    z = np.sqrt(np.clip(1 - x**2 - y**2, 0, None))
    scores = recos(u, np.stack([x, y, z], axis=-1) @ view)
    draw_scores(ax, np.where(x**2 + y**2 < 1, scores, np.nan), 1, [0.5, 0.9])

    # Exactly 1: u's own sector. Exactly -1: the opposite one, beyond the great circle u . v = 0.
    right, up, near = view @ u

    def orthogonal(rim: Any) -> Any:
        slope = near / (right * rim.real + up * rim.imag)
        return rim * slope / np.hypot(1, slope)

    arc = np.exp(1j * np.radians(np.linspace(30, 90, 31)))
    fill(ax, corners([0, *arc]), ONE)
    fill(ax, corners([*-arc, *-orthogonal(arc)[::-1]]), MINUS_ONE)
    half = np.exp(1j * (np.arctan2(up, right) + np.radians(np.linspace(-89.9, 89.9, 61))))
    ax.plot(*corners(-orthogonal(half)).T, color=INK, lw=0.5)
    rim = np.radians(np.linspace(0, 360, 181))
    ax.plot(np.cos(rim), np.sin(rim), color=INK, lw=1.2, zorder=4)
    for angle in np.radians([30, 90, 150]):
        ax.plot(*np.outer([np.cos(angle), np.sin(angle)], [-1, 1]), color=INK, lw=0.8)
    orders = ["123", "132", "312", "321", "231", "213"]
    for angle, order in zip(np.radians(60 - 60 * np.arange(6)), orders, strict=True):
        text = "$" + " < ".join(f"v_{i}" for i in order) + "$"
        turn = np.degrees(angle) - 90
        turn = (turn + 90) % 180 - 90
        ax.text(
            1.12 * np.cos(angle), 1.12 * np.sin(angle), text,
            ha="center", va="center", rotation=turn, fontsize=9.5,
        )  # fmt: skip
    mark(ax, (view @ u / np.linalg.norm(u))[:2], "$u$", PAPER)
    ax.set_title("recos in three dimensions", pad=8)
    ax.set(xlim=(-1.28, 1.28), ylim=(-1.28, 1.28))
    ax.set_axis_off()


def main() -> None:
    mpl.use("svg")
    ink = ["text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"]
    mpl.rcParams.update(dict.fromkeys(ink, INK))
    mpl.rcParams.update({"svg.hashsalt": "recos", "font.size": 10.5, "axes.titlesize": 12.5})
    figure, axes = plt.subplots(2, 2, figsize=(7.4, 8.3), facecolor=PAPER)
    planes(axes[0, 0], axes[0, 1], axes[1, 0])
    sphere(axes[1, 1])
    figure.subplots_adjust(left=0.08, right=0.97, top=0.95, bottom=0.155, wspace=0.22, hspace=0.24)
    key = figure.add_axes((0.08, 0.062, 0.40, 0.018))
    key.imshow(np.linspace(-1, 1, 20)[None], cmap=COLOURS, aspect="auto", extent=(-1, 1, 0, 1))
    key.set(yticks=[], xticks=[-1, -0.5, 0, 0.5, 1], xlabel="score of $(u, v)$")
    figure.legend(
        handles=[
            Patch(fc=ONE, ec=INK, label="exactly 1"),
            Patch(fc=MINUS_ONE, ec=INK, label="exactly \N{MINUS SIGN}1"),
        ],
        loc="center", bbox_to_anchor=(0.76, 0.07), ncols=2, frameon=False, fontsize=11,
    )  # fmt: skip
    target = Path(__file__).with_suffix(".svg")
    figure.savefig(target, metadata={"Date": None, "Creator": None})


if __name__ == "__main__":
    main()
