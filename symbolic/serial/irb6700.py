"""Models of ABB's IRB6700-200/2.60 with the stiffness source's values and identities."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType

from mechsmith.symbolic.model import Model
from mechsmith.symbolic.serial import identities
from mechsmith.symbolic.serial.conditioning import make_conditioning
from mechsmith.symbolic.serial.digits import make_significant_digits
from mechsmith.symbolic.serial.equilibrium import make_compensation, make_equilibrium
from mechsmith.symbolic.serial.kinematics import make_jacobian, make_pose
from mechsmith.symbolic.serial.robots import irb6700
from mechsmith.symbolic.serial.stiffness import make_compliance, make_deflection, make_gauge

# K_B of the source, N m/rad. Measured at (165, -165, 0) mm; loaded at an eyebolt 50 mm off axis 6, since on the axis, as
# printed, joint 6 can't be identified.
STIFFNESS = (3.7e6, 6.7e6, 3.3e6, 0.33e6, 0.61e6, 0.014e6)
_POINTS = {"measured_x": 0.165, "measured_y": -0.165, "loaded_y": -0.05, "loaded_z": 0.05}


def with_source_values(model: Model) -> Model:
    """Return a model of the robot with the source's compliances and points as nominal values."""
    values = {f"compliance_{i}": 1.0 / k for i, k in enumerate(STIFFNESS, start=1)} | _POINTS
    parameters = tuple(replace(q, nominal=values.get(q.name, q.nominal)) for q in model.parameters)
    return replace(model, parameters=parameters)


def make_irb6700_pose() -> Model:
    """Return the flange's pose."""
    return identities.with_pose_identities(irb6700(), make_pose(irb6700()))


def make_irb6700_jacobian() -> Model:
    """Return the hybrid Jacobian."""
    model = make_jacobian(irb6700())
    return identities.with_jacobian_identities(irb6700(), model, of_the_source=True)


def make_irb6700_conditioning() -> Model:
    """Return characteristic length, conditioning and manipulability."""
    return identities.with_conditioning_identities(irb6700(), make_conditioning(irb6700()))


def make_irb6700_deflection() -> Model:
    """Return the deflection by a mass on a rope."""
    return with_source_values(make_deflection(irb6700()))


def make_irb6700_deflection_wrench() -> Model:
    """Return the deflection by a wrench."""
    model = with_source_values(make_deflection(irb6700(), load="wrench"))
    return identities.with_deflection_identities(irb6700(), model)


def make_irb6700_gauge() -> Model:
    """Return what a gauge reads under a mass on a rope."""
    return with_source_values(make_gauge(irb6700()))


def make_irb6700_gauge_wrench() -> Model:
    """Return what a gauge reads under a wrench."""
    model = with_source_values(make_gauge(irb6700(), load="wrench"))
    return identities.with_gauge_identities(irb6700(), model)


def make_irb6700_compliance() -> Model:
    """Return the Cartesian compliance."""
    return with_source_values(make_compliance(irb6700()))


def make_irb6700_equilibrium() -> Model:
    """Return the deflection by the displaced robot's equilibrium."""
    return with_source_values(make_equilibrium(irb6700()))


def make_irb6700_compensation() -> Model:
    """Return the joint command that makes up for a load."""
    return with_source_values(make_compensation(irb6700()))


SERIAL_MODELS: Mapping[str, Callable[[], Model]] = MappingProxyType(
    {
        "irb6700_compensation": make_irb6700_compensation,
        "irb6700_compliance": make_irb6700_compliance,
        "irb6700_conditioning": make_irb6700_conditioning,
        "irb6700_deflection": make_irb6700_deflection,
        "irb6700_deflection_wrench": make_irb6700_deflection_wrench,
        "irb6700_equilibrium": make_irb6700_equilibrium,
        "irb6700_gauge": make_irb6700_gauge,
        "irb6700_gauge_wrench": make_irb6700_gauge_wrench,
        "irb6700_jacobian_hybrid": make_irb6700_jacobian,
        "irb6700_pose": make_irb6700_pose,
        "significant_digits": make_significant_digits,
    }
)
