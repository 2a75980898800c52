"""From a model's name to what can be evaluated and simulated, compiled where there is a compiler."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

from mechsmith.codegen import build
from mechsmith.codegen.discretise import Discretisation, Reconstruction, discretise
from mechsmith.codegen.functions import FunctionSet
from mechsmith.codegen.integrators import Exponential, ImplicitMidpoint, Integrator, Radau, RungeKutta4
from mechsmith.codegen.simulator import CasadiSimulator, Simulator
from mechsmith.symbolic.catalogue import make_model
from mechsmith.symbolic.model import Model
from mechsmith.symbolic.names import ModelError
from mechsmith.values import InputError

INTEGRATORS: Mapping[str, type[Integrator]] = {
    "radau": Radau,
    "runge_kutta_4": RungeKutta4,
    "exponential": Exponential,
    "implicit_midpoint": ImplicitMidpoint,
}


@dataclass(frozen=True)
class IntegratorChoice:
    """How a model is integrated between samples.

    Parameters
    ----------
    kind : str
        A name of `INTEGRATORS`.
    substeps : int
        Equal substeps in a sample.
    iterations : int, optional
        Newton iterations of the implicit ones.
    reconstruction : mapping of input to {"hold", "linear", "hermite"}
        How inputs behave between samples.
    split : bool
        Whether steps are split where the model switches.
    """

    kind: str = "radau"
    substeps: int = 1
    iterations: int | None = None
    reconstruction: Mapping[str, Reconstruction] = dataclasses.field(default_factory=dict)
    split: bool = True

    def integrator(self) -> Integrator:
        """Return the integrator.

        Raises
        ------
        InputError
            If the kind is unknown or an option does not suit it.
        """
        if self.kind not in INTEGRATORS:
            raise InputError(f"integrator {self.kind!r} is not known; allowed are {', '.join(INTEGRATORS)}.")
        if self.substeps < 1 or (self.iterations is not None and self.iterations < 1):
            raise InputError(
                f"integrator {self.kind}: substeps is {self.substeps}, iterations {self.iterations}; allowed is 1 or more."
            )
        made = INTEGRATORS[self.kind](substeps=self.substeps)
        if self.iterations is None:
            return made
        if not isinstance(made, Radau | ImplicitMidpoint):
            raise InputError(f"integrator {self.kind} has no iterations. Leave them out.")
        return dataclasses.replace(made, iterations=self.iterations)

    def discretise(self, functions: FunctionSet) -> Discretisation:
        """Return the functions made discrete in time."""
        return discretise(
            functions, self.integrator(), reconstruction=dict(self.reconstruction), split=self.split
        )


def load_model(name_or_path: str) -> Model:
    """Return a model of the catalogue or of a user's file; see `mechsmith.symbolic.catalogue.make_model`.

    Raises
    ------
    InputError
        If the user's function fails; what it raised is told.
    """
    try:
        return make_model(name_or_path)
    except ModelError:
        raise
    except (Exception, SystemExit) as error:  # a user's function may raise anything
        raise InputError(f"model {name_or_path!r} can't be made: {type(error).__name__}: {error}") from error


def make_simulator(functions: FunctionSet, choice: IntegratorChoice) -> tuple[Simulator, str]:
    """Return a simulator, in compiled C where that can be had, and in which words it runs.

    Returns
    -------
    (Simulator, str)
        The second is for the user: ``compiled C``, or CasADi and why.
    """
    discretisation = choice.discretise(functions)
    if not functions.states:
        return CasadiSimulator(discretisation), "CasADi (the model has no continuous states)"
    if build.find_compiler() is None:
        return CasadiSimulator(discretisation), "CasADi (there is no C compiler; simulations take longer)"
    try:
        return build.build_simulator(discretisation), "compiled C"
    except build.BuildError as error:
        return CasadiSimulator(discretisation), f"CasADi (the compiler failed: {str(error).splitlines()[0]})"
