"""Maps of the torque-transmission index of the planar robot in all eight working modes.

Run: python examples/parallel/transmission_maps.py [picture.png]
"""

import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt

from mechsmith.codegen.functions import FunctionSet
from mechsmith.codegen.lower import lower
from mechsmith.symbolic.parallel.planar import WORKING_MODES, make_planar_inverse


def transmission(inverse: FunctionSet, mode: str, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the index at points of a grid, (len(y), len(x)); not a number where a chain does not reach."""
    points = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    u = np.column_stack([points, np.tile(WORKING_MODES[mode], (len(points), 1))])
    return inverse.batch("output", u=u, p=inverse.vector("p"))[:, -1, 0].reshape(len(y), len(x))


def draw(target: Path, spacing: float = 0.002) -> dict[str, float]:
    """Draw the eight maps into a file; return the mean index of each working mode over the workspace."""
    inverse = lower(make_planar_inverse())
    x, y = np.arange(0.0, 0.5, spacing), np.arange(0.0, 0.5, spacing)
    figure, panels = plt.subplots(2, 4, figsize=(12, 6.4), sharex=True, sharey=True, layout="constrained")
    means = {}
    for panel, (mode, signs) in zip(panels.flat, WORKING_MODES.items(), strict=True):
        index = transmission(inverse, mode, x, y)
        means[mode] = float(np.nanmean(index))
        filled = panel.contourf(x, y, index, levels=np.linspace(0.0, 1.0, 11), cmap="viridis")
        panel.contour(x, y, index, levels=(0.5,), colors="white", linewidths=0.8)
        panel.plot([0.0, 0.433, 0.433], [0.25, 0.0, 0.5], "k^", markersize=5)
        written = "".join("+" if sign > 0 else "-" for sign in signs)
        panel.set_title(f"{mode} ({written}), mean {means[mode]:.3f}", fontsize=10)
        panel.set_aspect("equal")
    figure.colorbar(filled, ax=panels, label="torque transmission index (white: 0.5)", shrink=0.8)
    figure.supxlabel("x in m")
    figure.supylabel("y in m")
    figure.savefig(target, dpi=120)
    plt.close(figure)
    return means


if __name__ == "__main__":
    mpl.use("Agg")
    picture = Path(sys.argv[1] if len(sys.argv) > 1 else "transmission_maps.png")
    print(f"{picture}: " + ", ".join(f"{mode} {mean:.3f}" for mode, mean in draw(picture).items()))
