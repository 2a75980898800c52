"""LuGre with viscous friction that falls with temperature: f(v) = (a2 v + a3 sgn(v) v^2) exp(-decay (T - T0))."""

from sympy import exp

from mechsmith import Model, Quantity, make_model


def make_lugre_warm() -> Model:
    """Return the variant: the viscous friction multiplied, an input and two parameters added."""
    lugre = make_model("lugre")
    temperature = Quantity("temperature", "K", description="temperature of the lubricant", nominal=300.0)
    decay = Quantity(
        "decay", "1/K", description="relative fall of viscosity", nominal=0.02, lower=0.0, upper=1.0
    )
    base = Quantity(
        "base_temperature", "K", description="where a2 and a3 hold", nominal=300.0, lower=200.0, upper=400.0
    )
    warming = temperature.array[0] - base.array[0]
    return lugre.replace(
        name="lugre_warm",
        definitions={"viscous": lugre.expression("viscous") * exp(-decay.array[0] * warming)},
        inputs=(temperature,),
        parameters=(decay, base),
        description="LuGre friction with viscosity that falls with temperature.",
    )
