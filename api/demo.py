"""The whole way on a log that is simulated here: model, verification, code, identification, validation, report."""

import importlib.resources
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import jinja2
import numpy
from numpy.typing import NDArray

from mechsmith.codegen import build
from mechsmith.codegen.discretise import discretise
from mechsmith.codegen.files import write_text
from mechsmith.codegen.functions import FunctionSet
from mechsmith.codegen.lower import lower
from mechsmith.codegen.simulator import CasadiSimulator
from mechsmith.codegen.tree import c_files, python_files, write_files
from mechsmith.demo_joint import make_joint
from mechsmith.identification.method import Progress
from mechsmith.report.document import write_report
from mechsmith.study.run import StudyResult, run_study
from mechsmith.study.schema import load_study
from mechsmith.symbolic.verify import Row, verify_identity, verify_table

Array = NDArray[numpy.float64]

# The joint that is to be found: friction as in a small robot joint, the Stribeck peak a third of the Coulomb friction.
TRUTH = {
    "load_inertia": 0.8,
    "load_offset": 0.3,
    "friction_s0": 3.0e4,
    "friction_s1": 60.0,
    "friction_a0": 8.0,
    "friction_a1": 3.0,
    "friction_v0": 0.05,
    "friction_vd": 0.2,
    "friction_a2": 4.0,
    "friction_a3": -0.4,
}
COUNTS = 2**22  # of the encoder in a turn
TORQUE_CONSTANT = 6.5  # N*m/A, gear included
CURRENT_NOISE = 0.01  # A
PERIOD = 1e-3  # s
DURATION = 10.0  # s
FREQUENCY = 0.7  # Hz


@dataclass(frozen=True, eq=False)
class DemoResult:
    """What the demo did.

    Parameters
    ----------
    folder : Path
        Everything it wrote.
    report : Path
        The report to open.
    verdicts : tuple of Row
        On the identities of the joint.
    result : StudyResult
        Of the identification.
    compiled : bool
        Whether there was a compiler.
    """

    folder: Path
    report: Path
    verdicts: tuple[Row, ...]
    result: StudyResult
    compiled: bool


@dataclass(frozen=True, eq=False)
class Motion:
    """A motion, exact: time (s), angle (rad), velocity (rad/s), acceleration (rad/s^2), each (n,)."""

    time: Array
    angle: Array
    velocity: Array
    acceleration: Array


def swelling(duration: float) -> Motion:
    """Return an oscillation that grows from bristle deflections to half a turn."""
    time = _time(duration)
    growth, omega = numpy.log(3000.0) / duration, 2.0 * numpy.pi * FREQUENCY
    # the imaginary part of A exp((growth + i omega) t), whose derivatives are multiplications
    rate = complex(growth, omega)
    whole = 2.5e-4 * numpy.exp(rate * time)
    return Motion(time, whole.imag, (rate * whole).imag, (rate**2 * whole).imag)


def mixed(duration: float) -> Motion:
    """Return a sum of slow and fast oscillations, unlike `swelling`, to validate on."""
    time = _time(duration)
    angle, velocity, acceleration = (numpy.zeros_like(time) for _ in range(3))
    for amplitude, frequency in ((0.15, 0.4), (0.02, 1.3), (0.003, 2.9)):
        omega = 2.0 * numpy.pi * frequency
        # (1 - cos)^2 leaves rest so gently that a filter which sees no sample before does no harm
        lift, sine, cosine = 1.0 - numpy.cos(omega * time), numpy.sin(omega * time), numpy.cos(omega * time)
        angle += amplitude * lift**2
        velocity += 2.0 * amplitude * omega * lift * sine
        acceleration += 2.0 * amplitude * omega**2 * (sine**2 + lift * cosine)
    return Motion(time, angle, velocity, acceleration)


def _time(duration: float) -> Array:
    return PERIOD * numpy.arange(round(duration / PERIOD), dtype=numpy.float64)


def simulate_log(functions: FunctionSet, motion: Motion, *, rng: numpy.random.Generator) -> str:
    """Return a log as CSV text: encoder counts, and the motor's current with noise."""
    simulator = CasadiSimulator(discretise(functions))
    columns = {
        "velocity": motion.velocity,
        "acceleration": motion.acceleration,
        "friction_position": motion.angle,
    }
    samples = numpy.column_stack([columns[name] for name in simulator.samples])
    vectors = (functions.vector("x"), functions.vector("d"), functions.vector("p", TRUTH))
    rollout = simulator.rollout(motion.time, samples, *vectors)
    torque = rollout.outputs[:, functions.labels("y").index("load_torque")]
    current = torque / TORQUE_CONSTANT + CURRENT_NOISE * rng.standard_normal(len(torque))
    counts = numpy.rint(motion.angle * COUNTS / (2.0 * numpy.pi)).astype(int)
    rows = zip(motion.time, counts, current, strict=True)
    lines = [f"{t:.3f},{count},{amperes:.5f}" for t, count, amperes in rows]
    return "\n".join(["time,encoder,current", *lines]) + "\n"


def run_demo(
    folder: Path, *, tell: Callable[[str], None], progress: Callable[[str], None], seed: int = 0
) -> DemoResult:
    """Go the whole way and leave everything in a folder.

    Parameters
    ----------
    folder : Path
        Made when it is not there; files of the same names are replaced.
    tell : function of str
        Called with each thing that was done.
    progress : function of str
        Called with what is going on.
    seed : int
        Of the noise and of the search.
    """
    compiler = build.find_compiler()
    source = importlib.resources.files("mechsmith").joinpath("demo_joint.py").read_text(encoding="utf-8")
    write_text(folder / "joint.py", source)
    tell(f"The model, as {folder / 'joint.py'}:\n\n{source}")
    verdicts = _verify(tell, progress)
    functions = lower(make_joint())
    progress("generating code")
    _generate(folder, functions, compiler, tell)
    progress("simulating two logs")
    _write_logs(folder, functions, seed, tell)
    write_text(folder / "study.toml", _study(compiled=compiler is not None, seed=seed))
    result = _identify(folder, tell, progress)
    progress("writing the report")
    report = folder / "report.html"
    write_report(result, report, verdicts=verdicts)
    result.estimate.save(folder / "estimate.toml")
    return DemoResult(folder, report, verdicts, result, compiler is not None)


def _verify(tell: Callable[[str], None], progress: Callable[[str], None]) -> tuple[Row, ...]:
    model = make_joint()
    verdicts = []
    for identity in model.identities:
        progress(f"verifying {identity.name}")
        verdicts.append(verify_identity(model, identity))
    rows = verify_table(verdicts)
    counts = {
        status: sum(row.status == status for row in rows) for status in ("proved", "supported", "refuted")
    }
    expected = sum(row.as_expected for row in rows)
    tell(
        f"Verified: {len(rows)} equations of the friction model, {counts['proved']} proved, {counts['supported']} supported, "
        f"{counts['refuted']} refuted (misprints of the source); {expected} as expected."
    )
    return rows


def _generate(
    folder: Path, functions: FunctionSet, compiler: str | None, tell: Callable[[str], None]
) -> None:
    generated = folder / "generated"
    discretisation = discretise(functions)
    files = {**python_files(functions), **c_files(functions, discretisation=discretisation)}
    write_files(generated, files)
    tell(f"Generated: {', '.join(files)} in {generated}.")
    if compiler is None:
        tell("There is no C compiler: the C stays as it is, and simulations go on in CasADi.")
        return
    tell(f"Compiled by {compiler}, against its test vectors: {_run_test(generated.resolve(), compiler)}")


def _run_test(generated: Path, compiler: str) -> str:
    """Compile and run the generated test program; return its last line.

    Raises
    ------
    BuildError, ArithmeticError
        If it does not compile, or a value is off: then nothing that follows is worth anything.
    """
    program = generated / "joint_test"
    flags = ("-std=c99", "-O2", "-Wall", "-Wextra", "-pedantic")
    command = [compiler, *flags, "-o", str(program), "joint_test.c", "joint.c", "-lm"]
    made = subprocess.run(command, cwd=generated, capture_output=True, text=True, check=False)
    if made.returncode:
        raise build.BuildError(
            f"{compiler} refused the generated C in {generated}:\n{made.stderr.strip()[-2000:]}"
        )
    done = subprocess.run([str(program)], capture_output=True, text=True, check=False)
    last = (done.stdout.strip().splitlines() or ["no output"])[-1]
    if done.returncode:
        raise ArithmeticError(f"the generated C in {generated} fails its test vectors: {last}")
    return last


def _write_logs(folder: Path, functions: FunctionSet, seed: int, tell: Callable[[str], None]) -> None:
    generator = numpy.random.default_rng(seed)
    for name, motion in (("log.csv", swelling(DURATION)), ("second_log.csv", mixed(0.6 * DURATION))):
        write_text(folder / name, simulate_log(functions, motion, rng=generator))
        tell(
            f"Simulated: {folder / name}, {len(motion.time)} samples of encoder ({COUNTS} counts) and current."
        )


def _study(*, compiled: bool, seed: int) -> str:
    loader = jinja2.PackageLoader("mechsmith", "templates")
    environment = jinja2.Environment(
        loader=loader,
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701, what it makes is TOML
    )
    return environment.get_template("demo.toml.j2").render(
        compiled=compiled, seed=seed, counts=COUNTS, torque_constant=TORQUE_CONSTANT
    )


def _identify(folder: Path, tell: Callable[[str], None], progress: Callable[[str], None]) -> StudyResult:
    def on_stage(text: str, step: Progress | None) -> None:
        progress(text if step is None else f"{text}: {step.evaluation}, residual norm {step.norm:.5g}")

    result = run_study(load_study(folder / "study.toml"), tell=on_stage)
    seconds = sum(stage.seconds for stage in result.stages)
    tell(f"Identified in {seconds:.1f} s, simulations in {result.simulation}.")
    return result


def truth_rows(result: StudyResult) -> Sequence[tuple[str, float, float, float, bool]]:
    """Return name, truth, estimate, standard deviation, and whether the interval holds the truth."""
    estimate = result.estimate
    rows = []
    for name in estimate.names:
        low, high = estimate.interval(name)
        true = TRUTH[name]
        rows.append((name, true, estimate[name], estimate.deviation(name), low <= true <= high))
    return rows
