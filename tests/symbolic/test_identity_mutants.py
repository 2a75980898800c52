"""An identity that can't fail says nothing: change any term of it, or of the model, and it must be refuted."""

import dataclasses
from collections.abc import Iterator

import pytest
import sympy

from mechsmith.symbolic.friction.lugre import make_lugre
from mechsmith.symbolic.model import Model
from mechsmith.symbolic.names import ModelError
from mechsmith.symbolic.verify import Identity, judge, verify

ROTARY, LINEAR = make_lugre(), make_lugre(motion="linear")
TRUE_IDENTITIES = [identity for identity in ROTARY.identities if identity.expected == "proved"]
DEFINED = ("stribeck", "damping", "viscous", "bristle_rate", "z", "force")


def mutants(expression: sympy.Expr) -> Iterator[tuple[str, sympy.Expr]]:
    """Yield the expression with each term of each sum in it flipped, then dropped, and the same of the whole."""
    yield "whole flipped", -expression
    yield "whole dropped", sympy.Integer(0)
    for total in sorted(expression.atoms(sympy.Add), key=sympy.default_sort_key):
        for term in total.args:
            for change, changed in (("flipped", total - 2 * term), ("dropped", total - term)):
                yield f"{term} {change} in {total}", expression.xreplace({total: changed})


def survivors(model: Model, identity: Identity) -> list[str]:
    """Return the changes to an identity that aren't refuted."""
    statement = identity.of(model)
    # What an expansion or a limit drops from its left side may change without harm.
    sides = ("right",) if statement.expansion or statement.limit else ("left", "right")
    return [
        f"{side}: {change}"
        for side in sides
        for change, mutant in mutants(getattr(statement, side))
        if judge(model, dataclasses.replace(statement, **{side: mutant})).status != "refuted"
    ]


@pytest.mark.parametrize("model", [ROTARY, LINEAR], ids=lambda model: model.name)
@pytest.mark.parametrize("identity", TRUE_IDENTITIES, ids=lambda identity: identity.name)
def test_every_mutant_of_an_identity_is_refuted(model: Model, identity: Identity) -> None:
    assert survivors(model, identity) == []


def test_mutants_are_made_of_every_term() -> None:
    x, y = sympy.symbols("x y", real=True)
    found = {mutant for _, mutant in mutants(x * (1 + y) - 2)}
    whole = {-x * (1 + y) + 2, sympy.Integer(0)}
    outer = {-x * (1 + y) - 2, sympy.Integer(-2), x * (1 + y) + 2, x * (1 + y)}
    inner = {x * (y - 1) - 2, x * y - 2, x * (1 - y) - 2, x - 2}
    assert whole | outer | inner <= found


def test_an_identity_that_can_not_fail_is_found_out() -> None:
    identity = dataclasses.replace(TRUE_IDENTITIES[0], statement=_empty)
    assert survivors(ROTARY, identity) != []


def _empty(scope: object) -> object:
    true_of_anything = TRUE_IDENTITIES[0].of(ROTARY)
    difference = true_of_anything.left - true_of_anything.left
    return dataclasses.replace(true_of_anything, left=difference, right=sympy.Integer(0))


def changed_model(field: str, name: str, mutant: sympy.Expr) -> tuple[Model | None, str]:
    """Return the model with an equation exchanged, or why it is none."""
    try:
        return ROTARY.replace(**{field: {name: mutant}}), ""
    except ModelError as error:
        return None, str(error)


@pytest.mark.parametrize("name", DEFINED)
def test_every_mutant_of_the_model_breaks_an_identity(name: str) -> None:
    field = {"z": "derivatives", "force": "outputs"}.get(name, "definitions")
    for change, mutant in mutants(ROTARY.expression(name)):
        changed, refusal = changed_model(field, name, mutant)
        if changed is None:
            # The model's own checks were first: the term dropped was the only one to use some definition.
            assert "is used by no equation" in refusal
            continue
        broken = [v for v in verify(changed) if v.identity.expected == "proved" and v.status == "refuted"]
        assert broken, f"{name}: {change} breaks no identity"
