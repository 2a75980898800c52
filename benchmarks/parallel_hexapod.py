"""Gough-Stewart platform: all real postures of Dietmaier's example, and leg lengths in generated C beside Python.

Run: python benchmarks/parallel_hexapod.py [--starts 20000] [--poses 1000000]

Postures: Newton's method from random starts, all at once (seed 0). Leg lengths: one million poses through compiled C, CasADi's
machine and NumPy, the ratios in the same run.
"""

import argparse
import time
from collections.abc import Callable

import numpy as np
from rich.console import Console
from rich.table import Table

from mechsmith.codegen.build import build
from mechsmith.codegen.lower import lower
from mechsmith.identification.parallel.postures import all_postures, canonical_yaw_pitch_roll
from mechsmith.symbolic.parallel.closed_form import make_closed_inverse
from mechsmith.symbolic.parallel.closure import make_forward
from mechsmith.symbolic.parallel.mechanisms import hexapod

BOX = np.array([1.0, 1.0, 1.0, np.pi, np.pi / 2, np.pi])


def timed(run: Callable[[], np.ndarray]) -> tuple[np.ndarray, float]:
    begin = time.perf_counter()
    result = run()
    return result, time.perf_counter() - begin


def with_numpy(poses: np.ndarray, p: dict[str, float]) -> np.ndarray:
    """Return leg lengths as one would write them in NumPy, all poses at once."""
    c, s = np.cos(poses[:, 3:]), np.sin(poses[:, 3:])
    (cy, cp, cr), (sy, sp, sr) = c.T, s.T
    rows = [
        [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
        [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
        [-sp, cp * sr, cp * cr],
    ]
    rotation = np.array([[np.broadcast_to(e, cy.shape) for e in row] for row in rows])
    base = np.array([[p[f"base_{i}_{a}"] for a in "xyz"] for i in range(1, 7)])
    platform = np.array([[p[f"platform_{i}_{a}"] for a in "xyz"] for i in range(1, 7)])
    anchors = np.einsum("abn,kb->nka", rotation, platform) + poses[:, None, :3]
    return np.linalg.norm(anchors - base, axis=2)


def one_by_one(poses: np.ndarray, p: dict[str, float]) -> np.ndarray:
    """Return leg lengths pose by pose in Python, as a controller's prototype has them."""
    return np.array([with_numpy(pose[None, :], p)[0] for pose in poses])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--starts", type=int, default=20_000)
    parser.add_argument("--poses", type=int, default=1_000_000)
    options = parser.parse_args()
    console = Console(width=110)
    forward = lower(make_forward(hexapod()))
    begin = time.perf_counter()
    found = all_postures(
        forward,
        forward.vector("u"),
        forward.vector("p"),
        lower=-BOX,
        upper=BOX,
        starts=options.starts,
        rng=np.random.default_rng(0),
        canonical=lambda values: canonical_yaw_pitch_roll(values, (3, 4, 5)),
    )
    console.print(
        f"{len(found.values)} real postures from {found.starts} starts in {time.perf_counter() - begin:.0f} s; "
        f"each met {found.hits.min()} to {found.hits.max()} times"
    )
    inverse = lower(make_closed_inverse(hexapod()))
    compiled, p = build(inverse), inverse.vector("p")
    named = dict(zip(inverse.labels("p"), p, strict=True))
    poses = np.random.default_rng(1).uniform(-BOX, BOX, (options.poses, 6))
    compiled.batch("output", u=poses[:10], p=p)
    expected, reference = timed(lambda: compiled.batch("output", u=poses, p=p)[:, :, 0])
    few = poses[: max(len(poses) // 100, 1)]
    runs = {
        "generated C, batch": (expected, reference, len(poses)),
        "NumPy, whole arrays": (*timed(lambda: with_numpy(poses, named)), len(poses)),
        "CasADi's machine": (*timed(lambda: inverse.batch("output", u=few, p=p)[:, :, 0]), len(few)),
        "NumPy, pose by pose": (*timed(lambda: one_by_one(few, named)), len(few)),
    }
    table = Table("way", "poses", "s", "us a pose", "times C", "largest difference m")
    each = reference / len(poses)
    for name, (values, seconds, count) in runs.items():
        difference = np.abs(values - expected[:count]).max()
        per = seconds / count
        table.add_row(
            name, f"{count}", f"{seconds:.3g}", f"{1e6 * per:.3g}", f"{per / each:.3g}", f"{difference:.1e}"
        )
    console.print(table)


if __name__ == "__main__":
    main()
