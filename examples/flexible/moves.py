"""Shaped moves of a flexible link under PD control, in compiled C: which frequencies should a shaper be made for?

Moves by 1 rad in 1, 2, 3 and 4 s at joint stiffnesses of 1 and 0.1 N m/rad; no shaper, and ZVD shapers for four modes of
the cantilever, of the link on its joint with the hub held ("own"), and of the closed loop. Both models: the joint in the
modes as an elastic constraint, and Spong's with a coordinate of its own.

    python examples/flexible/moves.py [folder]

writes moves.csv and a plot for each stiffness into the folder (default: moves).
"""

import csv
import sys
from dataclasses import dataclass
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import numpy as np
from matplotlib import pyplot

from mechsmith.codegen.build import build, build_simulator
from mechsmith.codegen.discretise import discretise
from mechsmith.codegen.functions import Array, FunctionSet
from mechsmith.codegen.held import Held, HeldSimulator, hold
from mechsmith.codegen.integrators import RungeKutta4
from mechsmith.codegen.lower import lower
from mechsmith.codegen.unknowns import eliminate
from mechsmith.symbolic.compose import compose
from mechsmith.symbolic.control.position import make_pd_controller, make_shaped_move
from mechsmith.symbolic.control.shaping import Impulses, shaper_for_modes
from mechsmith.symbolic.flexible.beam import make_beam_frequencies
from mechsmith.symbolic.flexible.link import make_flexible_link, make_spong_link
from mechsmith.symbolic.model import Model

STEP = 5e-4
STIFFNESSES = (1.0, 0.1)
DURATIONS = (1.0, 2.0, 3.0, 4.0)
SHAPERS = ("none", "cantilever", "own", "closed_loop")
AFTER = 5.0  # s after the end of the command in which vibration is looked for


@dataclass(frozen=True)
class Loop:
    """A link under PD control in compiled C."""

    held: Held
    simulator: HeldSimulator

    def run(self, stiffness: float, time: Array, command: Array) -> dict[str, Array]:
        """Return the outputs by name."""
        p = self.held.original.vector("p", {"link_joint_stiffness": stiffness})
        states = np.zeros(self.held.original.size("x"))
        motion = self.simulator.rollout(time, command, states, np.zeros(0), p)
        if motion.status:
            raise SystemExit(f"{self.held.original.name}: {motion.status}")
        return dict(zip(self.held.original.labels("y"), motion.outputs.T, strict=True))

    def poles(self, stiffness: float) -> Array:
        """Return the poles of the loop at rest that oscillate, slowest first."""
        functions = self.held.functions.with_jacobians(("derivative", "x"))
        p = self.held.parameters(self.held.original.vector("p", {"link_joint_stiffness": stiffness}))
        point = {"x": np.zeros(functions.size("x")), "u": np.zeros(functions.size("u")), "p": p}
        matrix = np.linalg.solve(
            functions.evaluate("mass", **point), functions.evaluate("derivative_x", **point)
        )
        found = np.linalg.eigvals(matrix)
        oscillating = found[found.imag > 1.0]
        return np.asarray(oscillating[np.argsort(oscillating.imag)])


def make_loop(link: Model, name: str) -> Loop:
    """Return a link under PD control (Kp = 0.6 N m/rad, Kd = 0.3 N m s/rad)."""
    model = compose(
        name,
        parts={"link": link, "pd": make_pd_controller()},
        connect={"link.torque": "pd.torque", "pd.angle": "link.angle", "pd.angle_rate": "link.angle_rate"},
    )
    held = hold(lower(model))
    inner = build_simulator(discretise(held.functions, RungeKutta4()), sensitivities=False)
    return Loop(held, held.simulator(inner))


def frequencies(stiffness: float | None) -> Array:
    """Return the first four frequencies with the hub held; of the cantilever for no stiffness."""
    functions = eliminate(lower(make_beam_frequencies(root="clamped" if stiffness is None else "spring")))
    values = {} if stiffness is None else {"joint_stiffness": stiffness}
    return functions.evaluate("output", p=functions.vector("p", values))[:, 0]


def impulses_for(loop: Loop, stiffness: float, kind: str) -> Impulses:
    """Return the ZVD shaper of a kind."""
    if kind == "none":
        return Impulses((0.0,), (1.0,))
    if kind == "closed_loop":
        poles = loop.poles(stiffness)[:4]
        return shaper_for_modes("zvd", list(abs(poles)), list(-poles.real / abs(poles)))
    return shaper_for_modes("zvd", list(frequencies(None if kind == "cantilever" else stiffness)))


def command(functions: FunctionSet, duration: float, time: Array) -> Array:
    """Return the shaped angle and its rate, (n, 2), from the compiled shaper."""
    return functions.batch("output", d=time[:, None], p=functions.vector("p", {"duration": duration}))[
        :, :, 0
    ]


def row(time: Array, end: float, outputs: dict[str, Array]) -> dict[str, float]:
    """Return what is compared: vibration left after the command, settling, torque."""
    tip = 1e3 * np.abs(outputs["link_tip_deflection"])
    wrong = time[np.abs(outputs["link_hub_angle"] - 1.0) > 0.01]
    shaking = time[tip > 1.0]
    return {
        "command_end_s": round(end, 4),
        "residual_mm": round(float(tip[time >= end].max()), 3),
        "peak_tip_mm": round(float(tip.max()), 3),
        "tip_below_1mm_s": round(float(shaking[-1]), 3) if len(shaking) else 0.0,
        "angle_within_1pct_s": round(float(wrong[-1]), 3),
        "torque_variation": round(float(np.abs(np.diff(outputs["pd_torque"])).sum()), 4),
        "joint_angle_rad": round(float(np.abs(outputs["link_joint_angle"]).max()), 4),
    }


def main(folder: Path) -> None:
    """Run all moves and write tables and plots."""
    folder.mkdir(parents=True, exist_ok=True)
    loops = {
        "elastic_constraint": make_loop(make_flexible_link(), "constraint_loop"),
        "spong": make_loop(make_spong_link(modes=3, order="fourth"), "spong_loop"),
    }
    rows = []
    for stiffness in STIFFNESSES:
        figure, axes = pyplot.subplots(3, len(DURATIONS), figsize=(16, 8), sharex="col")
        for kind in SHAPERS:
            impulses = impulses_for(loops["elastic_constraint"], stiffness, kind)
            move = build(lower(make_shaped_move(impulses)))
            for place, duration in enumerate(DURATIONS):
                end = duration + impulses.length
                time = np.arange(0.0, end + AFTER, STEP)
                asked = command(move, duration, time)
                for name, loop in loops.items():
                    outputs = loop.run(stiffness, time, asked)
                    label = {"model": name, "k": stiffness, "T": duration, "shaper": kind}
                    rows.append({**label, **row(time, end, outputs)})
                    print(rows[-1])
                    if name == "elastic_constraint":
                        for axis, output in zip(
                            axes[:, place],
                            ("link_tip_deflection", "link_hub_angle", "pd_torque"),
                            strict=True,
                        ):
                            axis.plot(time, outputs[output], label=kind, linewidth=0.8)
        for axis, text in zip(
            axes[:, 0], ("tip deflection / m", "hub angle / rad", "torque / N m"), strict=True
        ):
            axis.set_ylabel(text)
        for place, duration in enumerate(DURATIONS):
            axes[0, place].set_title(f"k = {stiffness:g} N m/rad, T = {duration:g} s")
            axes[2, place].set_xlabel("time / s")
        axes[0, 0].legend()
        figure.tight_layout()
        figure.savefig(folder / f"moves_k_{stiffness:g}.png", dpi=110)
        pyplot.close(figure)
    with (folder / "moves.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("moves"))
