"""From which stiffness on may a joint be taken as rigid? Table and plot of k_c = P(r) EI/l.

python examples/flexible/critical_stiffness.py [folder]
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import numpy as np
from matplotlib import pyplot

from mechsmith.codegen.lower import lower
from mechsmith.symbolic.flexible.critical import make_critical_stiffness


def main(folder: Path) -> None:
    """Print the table and write the plot."""
    folder.mkdir(parents=True, exist_ok=True)
    functions = lower(make_critical_stiffness())
    p = functions.vector("p")
    ratios = np.array([0.8, 0.85, 0.9, 0.92, 0.94, 0.95, 0.96, 0.97, 0.98, 0.985, 0.99, 0.995, 0.999])
    values = functions.batch("output", u=ratios[:, None], p=p)[:, :, 0]
    print("r        P(r)                k_c / (N m/rad)  at EI/l = 0.1626 N m/rad")
    for ratio, (relative, stiffness) in zip(ratios, values, strict=True):
        print(f"{ratio:<7g}  {relative:<18.15g}  {stiffness:.6g}")
    fine = np.linspace(0.05, 0.999, 500)
    figure, axis = pyplot.subplots(figsize=(7, 4.5))
    axis.semilogy(fine, functions.batch("output", u=fine[:, None], p=p)[:, 0, 0], label="P(r)")
    near = fine[fine > 0.8]
    axis.semilogy(near, 2.0 / (1.0 - near) - 2.8765055, "--", label="2/(1 - r) - 2.8765")
    axis.set_xlabel("first frequency over that of the clamped beam, r")
    axis.set_ylabel("k_c l / EI")
    axis.grid(visible=True, which="both", alpha=0.3)
    axis.legend()
    figure.tight_layout()
    figure.savefig(folder / "critical_stiffness.png", dpi=120)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("critical_stiffness"))
