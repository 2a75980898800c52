"""LuGre with a free exponent in the Stribeck curve: g(v) = a0 + a1 exp(-|v/v0|^exponent)."""

from sympy import Abs, exp

from mechsmith import Model, Quantity, make_model


def make_lugre_exponent() -> Model:
    """Return the variant: one definition exchanged, one parameter added."""
    lugre = make_model("lugre")
    exponent = Quantity(
        "exponent", "", description="shape of the Stribeck curve", nominal=2.0, lower=0.5, upper=4.0
    )
    n = exponent.array[0]
    return lugre.replace(
        name="lugre_exponent",
        definitions={
            "stribeck": lugre["a0"] + lugre["a1"] * exp(-(Abs(lugre["velocity"] / lugre["v0"]) ** n))
        },
        parameters=(exponent,),
        description="LuGre friction with a free exponent in the Stribeck curve.",
    )
