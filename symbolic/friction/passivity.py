"""Where a bristle model takes power out of the motion, and where it would put some in.

The identity ``dissipation`` of each model shows that with the stored energy s0 z^2 / 2 it is passive where
s1(v)^2 |v| <= 4 g(v) (s1(v) + f(v) / v). That is sufficient: bristles can't be bent as far as it allows for. Compare
Barabanov and Ortega 2000, Necessary and sufficient conditions for passivity of the LuGre friction model, IEEE Trans.
Automatic Control 45(4), 830-832.
"""

from collections.abc import Mapping
from typing import NamedTuple

from mechsmith.symbolic.evaluate import Evaluator
from mechsmith.symbolic.model import Model
from mechsmith.symbolic.names import ModelError

POINTS = 400


class Passivity(NamedTuple):
    """Whether bristles are passive up to a speed.

    `ratio` is the largest s1(v)^2 |v| / (4 g(v) (s1(v) + f(v) / v)), at `velocity`; passive means at most 1.
    """

    passive: bool
    ratio: float
    velocity: float

    def __str__(self) -> str:
        verdict = "passive" if self.passive else "may be active"
        return f"{verdict}: s1^2 |v| / (4 g (s1 + f/v)) reaches {self.ratio:.4g} at v = {self.velocity:.4g}"


def bristle_passivity(
    model: Model, parameters: Mapping[str, float] | None = None, *, fastest: float = 10.0
) -> Passivity:
    """Return whether a bristle model is passive up to a speed in both directions.

    Parameters
    ----------
    model : Model
        With the definition `stribeck`, and `damping` or the parameter `s1`; `viscous` counts where it is there.
    parameters : mapping of name to float, optional
        SI; nominal values fill the rest.
    fastest : float
        Largest speed looked at, rad/s or m/s; a logarithmic grid over seven decades below it is searched.

    Raises
    ------
    ModelError
        If the model has no bristle damping or no `stribeck`.
    """
    if "stribeck" not in model.symbols or not {"damping", "s1"} & set(model.symbols):
        raise ModelError(
            f"model {model.name!r} has no bristle damping over g(v): it needs the definition 'stribeck', and 'damping' or 's1'."
        )
    damping = model.expression("damping") if "damping" in model.quantities else model["s1"]
    v = model["velocity"]
    viscous = model.expression("viscous") if "viscous" in model.quantities else 0
    damping, viscous, stribeck = (
        model.expand(each) for each in (damping, viscous, model.expression("stribeck"))
    )
    evaluator = Evaluator([damping**2 * abs(v) / (4 * stribeck * (damping + viscous / v))])
    nominal = {quantity.name: quantity.nominal for quantity in model.parameters}
    values = {**nominal, **(parameters or {})}
    missing = [name for name, value in values.items() if value is None]
    if missing:
        raise ModelError(
            f"model {model.name!r}: no value for {', '.join(missing)}. Give parameters={{name: value}}."
        )
    known = {name: float(value) for name, value in values.items() if value is not None}
    speeds = [way * fastest * 10.0 ** (-7.0 * i / POINTS) for i in range(POINTS + 1) for way in (1.0, -1.0)]
    found = [(float(evaluator({**known, "velocity": speed})[0]), speed) for speed in speeds]
    largest, speed = max(found)
    return Passivity(largest <= 1.0, largest, speed)
