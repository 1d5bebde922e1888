"""The learning curve of a report as SVG, whose letters and axes have the colour of the text around.

Reports need neither matplotlib nor two pictures, for light and for dark pages. The vertical axis
begins at zero, so that a fall looks as large as it is. The horizontal axis is logarithmic, with
ticks at the sizes of the report's table.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hiddenmanifold.arrays import Array

if TYPE_CHECKING:
    import xarray as xr

WIDTH, HEIGHT = 480, 298
LEFT, RIGHT, TOP, BOTTOM = 60, 458, 28, 226
"""Edges of the panel within the picture."""
TICKS = (1 / 8, 1 / 4, 1 / 2, 1, 2, 4, 8)
BLUE, ORANGE = "#1f83c6", "#d55e00"
"""Legible on white and on black."""
TALLEST = 2.0
"""The vertical axis ends at so many times the upper end of the error with N samples, at most."""
ERROR = "generalisation_error"
LETTERS = 'font-size="12.5" fill="currentColor"'


@dataclass(frozen=True)
class Panel:
    """Where sizes between two ends, and errors from zero to `top`, lie in the picture."""

    first: float
    last: float
    top: float

    def x(self, n: Array) -> Array:
        """Places along the logarithmic axis."""
        out: Array = LEFT + (RIGHT - LEFT) * np.log(n / self.first) / np.log(self.last / self.first)
        return out

    def y(self, error: Array) -> Array:
        """Places upwards; what lies above the panel is at its upper edge."""
        out: Array = BOTTOM - (BOTTOM - TOP) * np.clip(error, 0.0, self.top) / self.top
        return out


def drawn(curve: xr.Dataset, held: xr.Dataset | None) -> str:
    """The picture of a `learning_curve`, and of the `backtest` if there is one."""
    N, n = float(curve.attrs["N"]), curve.n.values
    mean, low, high = (curve[f"{ERROR}{end}"].values for end in ("", "_low", "_high"))
    known = ~np.isnan(mean)
    step, top = _scale(high[known], TALLEST * float(high[n == N][0]))
    panel = Panel(float(n[0]), float(n[-1]), top)
    measure = str(curve[ERROR].attrs["long_name"])
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{measure} against the number of rows">',
        f'<text x="2" y="14" {LETTERS}>{measure}</text>',
        *_axes(panel, step, N),
        *_prediction(panel, n[known], mean[known], low[known], high[known]),
    ]
    if held is not None:
        at = held.isel(regularisation=0)
        several = at.n.values, at[ERROR].values, at[f"{ERROR}_stderr"].values
        parts += _measured(panel, *several, circle=True)
    loo = (np.array([float(curve[f"{ERROR}_leave_one_out{end}"])]) for end in ("", "_stderr"))
    parts += _measured(panel, np.array([N]), *loo, circle=False)
    return "\n".join([*parts, *_legend(held is not None), "</svg>"])


def _scale(values: Array, most: float) -> tuple[float, float]:
    """The step of ticks, and the end of the axis, a multiple of it."""
    end = float(min(np.max(values), most)) or 1.0
    size = 10.0 ** np.floor(np.log10(end / 4))
    step = float(next(s * size for s in (1, 2, 2.5, 5, 10) if s * size * 5 >= end))
    return step, step * float(np.ceil(end / step))


def _axes(panel: Panel, step: float, N: float) -> Iterator[str]:
    """Lines across at round errors, and ticks at halves and multiples of N."""
    errors = np.arange(0.0, panel.top + 0.5 * step, step)
    for error, y in zip(errors.tolist(), panel.y(errors).tolist(), strict=True):
        strength = "" if error == 0 else ' stroke-opacity=".16"'
        yield (
            f'<path d="M{LEFT} {y:.1f}H{RIGHT}" stroke="currentColor"{strength}/>'
            f'<text x="{LEFT - 7}" y="{y + 4:.1f}" text-anchor="end" {LETTERS}>{error:.4g}</text>'
        )
    sizes = np.array([m * N for m in TICKS if panel.first <= 1.01 * m * N <= 1.02 * panel.last])
    for n, x in zip(sizes.tolist(), panel.x(sizes).tolist(), strict=True):
        weight = ' font-weight="650"' if n == N else ""
        yield (
            f'<path d="M{x:.1f} {BOTTOM}v5" stroke="currentColor"/>'
            f'<text x="{x:.1f}" y="{BOTTOM + 19}" text-anchor="middle"{weight} {LETTERS}>{n:.0f}'
            "</text>"
        )
    middle = (LEFT + RIGHT) / 2
    yield (f'<text x="{middle}" y="{BOTTOM + 38}" text-anchor="middle" {LETTERS}>rows</text>')


def _prediction(panel: Panel, n: Array, mean: Array, low: Array, high: Array) -> Iterator[str]:
    """The band and the line."""
    x = panel.x(n)
    across, up = np.concatenate([x, x[::-1]]), np.concatenate([low, high[::-1]])
    yield f'<path d="{_path(across, panel.y(up))}Z" fill="{BLUE}" fill-opacity=".2"/>'
    line = _path(x, panel.y(mean))
    yield f'<path d="{line}" fill="none" stroke="{BLUE}" stroke-width="2.4"/>'


def _path(x: Array, y: Array) -> str:
    return "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in zip(x, y, strict=True))


def _measured(panel: Panel, n: Array, error: Array, bar: Array, *, circle: bool) -> Iterator[str]:
    """Measurements with their standard errors."""
    ends = panel.y(error + bar), panel.y(error - bar)
    for x, y, top, bottom in zip(panel.x(n), panel.y(error), *ends, strict=True):
        yield f'<path d="M{x:.1f} {top:.1f}V{bottom:.1f}" stroke="{ORANGE}" stroke-width="1.6"/>'
        yield _mark(x, y, circle=circle)


def _mark(x: float, y: float, *, circle: bool) -> str:
    if circle:
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{ORANGE}"/>'
    return f'<path d="M{x:.1f} {y - 5.5:.1f}l5.5 5.5l-5.5 5.5l-5.5-5.5Z" fill="{ORANGE}"/>'


def _legend(backtest: bool) -> Iterator[str]:
    """What lines and marks are, in a row below."""
    x, y = 4, HEIGHT - 12
    yield (
        f'<path d="M{x} {y - 9}h22v10h-22Z" fill="{BLUE}" fill-opacity=".2"/>'
        f'<path d="M{x} {y - 4}h22" stroke="{BLUE}" stroke-width="2.4"/>'
        f'<text x="{x + 28}" y="{y}" {LETTERS}>predicted ± 1 sd</text>'
    )
    others = [("leave-one-out", False), ("held-out rows", True)][: 1 + backtest]
    for (words, circle), left in zip(others, (190, 330), strict=False):
        yield _mark(left, y - 4, circle=circle)
        yield f'<text x="{left + 12}" y="{y}" {LETTERS}>{words}</text>'
