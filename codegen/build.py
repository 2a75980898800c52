"""Compiles generated C with the system's compiler and loads it back: the same types, fast.

Libraries are kept in a cache by a digest of their text and of how they were compiled. Each is built in a
folder of its own and moved into place whole, so that many processes may build at once.
"""

import ctypes
import dataclasses
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy

from mechsmith.codegen.discretise import Discretisation, check_motion, check_stability
from mechsmith.codegen.emit_c import emit_batch, emit_c, sensitivity_pairs
from mechsmith.codegen.functions import ARGUMENTS, Array, FunctionSet, FunctionSetError
from mechsmith.codegen.simulator import (
    STATUS,
    Rollout,
    RolloutSensitivities,
    check_batch_arguments,
    check_rollout_arguments,
)
from mechsmith.symbolic.names import identifier

# No -ffast-math: a library built with it switches denormal numbers off for the whole process.
# A function that is missing is an error: the library would load and fail when it is called.
FLAGS = (
    *("-std=c99", "-O2", "-fPIC", "-shared", "-fno-math-errno", "-ffp-contract=off"),
    "-Werror=implicit-function-declaration",
)


class BuildError(RuntimeError):
    """No compiler, or the compiler refused the text."""


def find_compiler() -> str | None:
    """Return the path of a C compiler (`cc`, `gcc` or `clang`), or None."""
    return next((path for name in ("cc", "gcc", "clang") if (path := shutil.which(name))), None)


def default_cache() -> Path:
    """Return the folder of compiled libraries: ``mechsmith`` in the user's cache folder."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mechsmith"


def build(functions: FunctionSet, *, cache: Path | None = None) -> FunctionSet:
    """Return the same functions compiled from generated C.

    Parameters
    ----------
    functions : FunctionSet
        With CasADi functions.
    cache : Path, optional
        Folder for compiled libraries; `default_cache()` when not given.

    Raises
    ------
    BuildError
        If there is no compiler or it fails. CasADi's functions do everything else without one.
    """
    library = _compile(functions, None, cache)
    return _compiled(functions, library)


def build_simulator(
    discretisation: Discretisation, *, cache: Path | None = None, sensitivities: bool = True
) -> "CompiledSimulator":
    """Return a simulator whose rollouts and sensitivities run in compiled C.

    Parameters
    ----------
    discretisation : Discretisation
        Of a model with continuous states.
    cache : Path, optional
        Folder for compiled libraries; `default_cache()` when not given.
    sensitivities : bool
        Whether rollouts with sensitivities are compiled too; of a large model they take the compiler most of its time.

    Raises
    ------
    BuildError
        If there is no compiler or it fails. `CasadiSimulator` needs none.
    """
    if not discretisation.functions.states:
        raise FunctionSetError(
            f"functions {discretisation.functions.name!r}: there are no continuous states to integrate. Use CasadiSimulator."
        )
    functions = discretisation.functions
    if sensitivities:
        functions = functions.with_jacobians(*sensitivity_pairs(functions))
    library = _compile(functions, discretisation, cache, sensitivities=sensitivities)
    return CompiledSimulator(library, _compiled(functions, library), discretisation, sensitivities)


def _compiled(functions: FunctionSet, library: Path) -> FunctionSet:
    prefix = identifier(functions.name)
    evaluators = {
        name: CompiledEvaluator(library, f"{prefix}_batch_{name}", evaluator.shape, functions.sizes)
        for name, evaluator in functions.functions.items()
    }
    return dataclasses.replace(functions, functions=evaluators, capabilities=frozenset({"batch"}))


def _compile(
    functions: FunctionSet,
    discretisation: Discretisation | None,
    cache: Path | None,
    *,
    sensitivities: bool = True,
) -> Path:
    compiler = find_compiler()
    if compiler is None:
        raise BuildError(
            f"functions {functions.name!r}: no C compiler found (cc, gcc or clang). Install one, or use the CasADi functions."
        )
    texts = dict(emit_c(functions, discretisation=discretisation))
    main = f"{identifier(functions.name)}_batch.c"
    texts[main] = emit_batch(functions, discretisation=discretisation, sensitivities=sensitivities)
    folder = cache or default_cache()
    target = folder / f"{identifier(functions.name)}-{_digest(texts, compiler)}.so"
    if not target.exists():
        _run_compiler(compiler, texts, main, target)
    return target


def _digest(texts: Mapping[str, str], compiler: str) -> str:
    version = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=False).stdout
    whole = "\0".join([*texts, *texts.values(), *FLAGS, version, platform.machine()])
    return hashlib.sha256(whole.encode()).hexdigest()[:24]


def _run_compiler(compiler: str, texts: Mapping[str, str], main: str, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix="build-") as name:
        folder = Path(name)
        for file, text in texts.items():
            (folder / file).write_text(text, encoding="utf-8")
        done = subprocess.run(
            [compiler, *FLAGS, "-o", "out.so", main, "-lm"],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise BuildError(f"{compiler} refused {main}:\n{done.stderr[-4000:]}")
        (folder / "out.so").replace(target)


_DOUBLES = ctypes.POINTER(ctypes.c_double)


def _pointer(array: Array) -> Any:
    return array.ctypes.data_as(_DOUBLES)


@dataclass(frozen=True)
class CompiledEvaluator:
    """One compiled function of (x, d, z, u, p); pickles as the path of its library."""

    library: Path
    symbol: str
    shape: tuple[int, int]
    sizes: tuple[int, ...]

    @cached_property
    def _call(self) -> Any:
        function = _load(self.library)[self.symbol]
        function.restype = None
        pairs = [kind for _ in ARGUMENTS for kind in (_DOUBLES, ctypes.c_size_t)]
        function.argtypes = [ctypes.c_size_t, *pairs, _DOUBLES]
        return function

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    def __call__(self, *arguments: Array) -> Array:
        """Evaluate at one point."""
        return self.batch(*(argument.reshape(1, -1) for argument in arguments))[0]

    def batch(self, *arguments: Array) -> Array:
        """Evaluate at many points: each argument ``(n, size)`` or ``(1, size)``."""
        count = max(argument.shape[0] for argument in arguments)
        out = numpy.empty((count, *self.shape))
        if not out.size:
            return out
        values: list[Any] = []
        whole = [numpy.ascontiguousarray(argument, dtype=float) for argument in arguments]
        for array, size in zip(whole, self.sizes, strict=True):
            values += [_pointer(array), size if array.shape[0] > 1 else 0]
        self._call(count, *values, _pointer(out))
        return out


def _load(library: Path) -> ctypes.CDLL:
    if not library.exists():
        raise BuildError(
            f"the compiled library {library.name} is gone from {library.parent}. Build it again."
        )
    return ctypes.CDLL(str(library))


@dataclass(frozen=True)
class CompiledSimulator:
    """Rollouts in compiled C; see `mechsmith.codegen.simulator.Simulator`."""

    library: Path
    functions: FunctionSet
    discretisation: Discretisation
    with_sensitivities: bool = True

    @property
    def samples(self) -> tuple[str, ...]:
        """Names of the columns of `samples`."""
        return self.discretisation.sample_labels

    @cached_property
    def _loaded(self) -> ctypes.CDLL:
        return _load(self.library)

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    def rollout(self, time: Array, samples: Array, x0: Array, d0: Array, p: Array) -> Rollout:
        """Simulate from time[0] to time[-1]."""
        time, samples, x0, d0, p = self._checked(time, samples, x0, d0, p)
        n = len(time)
        outputs = numpy.full((n, self.functions.size("y")), numpy.nan)
        states, memories = numpy.full((n, len(x0)), numpy.nan), numpy.full((n, len(d0)), numpy.nan)
        failed = ctypes.c_size_t(0)
        status = self._function("rollout")(
            ctypes.c_size_t(n),
            *(_pointer(a) for a in (time, samples, x0, d0, p, outputs, states, memories)),
            ctypes.byref(failed),
        )
        check_motion(self.discretisation, states, memories, samples, p, time)
        return Rollout(outputs, states, memories, self._status(status, failed.value, time))

    def rollout_sensitivities(
        self, time: Array, samples: Array, x0: Array, d0: Array, p: Array
    ) -> RolloutSensitivities:
        """Simulate with exact derivatives by the parameters and the initial state."""
        if not self.with_sensitivities:
            raise FunctionSetError(
                f"functions {self.functions.name!r}: this simulator was built without sensitivities. "
                "Use build_simulator(..., sensitivities=True)."
            )
        time, samples, x0, d0, p = self._checked(time, samples, x0, d0, p)
        n, ny = len(time), self.functions.size("y")
        outputs = numpy.full((n, ny), numpy.nan)
        derivatives = numpy.full((n, ny, len(p) + len(x0)), numpy.nan)
        failed = ctypes.c_size_t(0)
        status = self._function("rollout_sensitivity")(
            ctypes.c_size_t(n),
            *(_pointer(a) for a in (time, samples, x0, d0, p, outputs, derivatives)),
            ctypes.byref(failed),
        )
        by_p, by_x0 = derivatives[:, :, : len(p)], derivatives[:, :, len(p) :]
        return RolloutSensitivities(outputs, by_p, by_x0, self._status(status, failed.value, time))

    def rollout_batch(
        self, time: Array, samples: Array, x0: Array, d0: Array, p: Array
    ) -> tuple[Array, tuple[str, ...]]:
        """Simulate for each row of p (k, np)."""
        starts, rows = check_batch_arguments(self.functions, x0, p)
        count, n = len(rows), len(time)
        outputs = numpy.full((count, n, self.functions.size("y")), numpy.nan)
        if not count:
            return outputs, ()
        time, samples, _, d0, _ = self._checked(time, samples, starts[0], d0, rows[0])
        statuses = numpy.zeros(count, dtype=numpy.intc)
        failed = numpy.zeros(count, dtype=numpy.uintp)
        function = self._loaded[f"{identifier(self.functions.name)}_rollout_batch"]
        function.restype = None
        function(
            *(ctypes.c_size_t(size) for size in (count, n)),
            *(_pointer(a) for a in (time, samples, starts)),
            ctypes.c_size_t(starts.shape[1] if len(starts) > 1 else 0),
            *(_pointer(a) for a in (d0, rows, outputs)),
            statuses.ctypes.data_as(ctypes.c_void_p),
            failed.ctypes.data_as(ctypes.c_void_p),
        )
        words = tuple(self._status(int(s), int(k), time) for s, k in zip(statuses, failed, strict=True))
        return outputs, words

    def _function(self, name: str) -> Any:
        function = self._loaded[f"{identifier(self.functions.name)}_{name}"]
        function.restype = ctypes.c_int
        return function

    def _status(self, status: int, sample: int, time: Array) -> str:
        return f"{STATUS[status]} at t = {time[sample]:.6g} s (sample {sample})" if status else ""

    def _checked(self, *arguments: Array) -> list[Array]:
        arrays = [numpy.ascontiguousarray(argument, dtype=float) for argument in arguments]
        check_rollout_arguments(self.functions, self.samples, *arrays)
        inputs = self.functions.size("u")
        time, samples, x0, d0, p = arrays
        check_stability(
            self.discretisation,
            x0[None, :],
            d0[None, :],
            samples[:, :inputs],
            p,
            float(numpy.diff(time).max()),
        )
        return arrays
