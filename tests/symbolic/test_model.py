"""What is checked of a model when it is built, how it is looked into, and variants of it."""

import pytest
import sympy
from sympy.physics.mechanics import dynamicsymbols

from mechsmith.symbolic import graph
from mechsmith.symbolic.checks import ModelWarning
from mechsmith.symbolic.model import Model
from mechsmith.symbolic.names import ModelError, identifier
from mechsmith.symbolic.quantity import Quantity

mass, damping, force, position, velocity = sympy.symbols("mass damping force position velocity", real=True)


def slider(**changed: object) -> Model:
    fields: dict[str, object] = {
        "name": "slider",
        "states": (Quantity(position, "m"), Quantity(velocity, "m/s")),
        "inputs": (Quantity(force, "N"),),
        "parameters": (
            Quantity(mass, "kg", nominal=95.0, lower=1.0, upper=500.0),
            Quantity(damping, "N*s/m", nominal=200.0, lower=0.0, upper=2000.0),
        ),
        "derivatives": {position: velocity, velocity: (force - damping * velocity) / mass},
        "outputs": {Quantity("encoder", "m"): position},
        **changed,
    }
    return Model(**fields)  # type: ignore[arg-type]


def accelerated(right: object, **changed: object) -> Model:
    return slider(derivatives={position: velocity, velocity: right}, **changed)


# -- what is refused ------------------------------------------------------------------------------------


def test_the_message_of_the_design() -> None:
    with pytest.raises(ModelError) as error:
        accelerated((force - damping * velocity) / mass + sympy.Symbol("stray", real=True))
    assert str(error.value) == (
        "model 'slider': derivatives[velocity] uses undeclared symbol 'stray'.\n"
        "Declared: states position, velocity; inputs force; parameters mass, damping.\n"
        "Declare it as a Quantity of this model."
    )


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"inputs": (Quantity(force, "N"), Quantity("spare", "N"))},
            "'spare' of inputs is used by no equation",
        ),
        (
            {"inputs": (Quantity(force, "N"), Quantity("mass", "N"))},
            "'mass' is declared twice, in inputs and in",
        ),
        (
            {"outputs": {Quantity("mass", "kg"): mass}},
            "'mass' is declared twice, in parameters and in outputs",
        ),
        ({"derivatives": {position: velocity}}, "'velocity' of states has 0 entries in derivatives"),
        (
            {"derivatives": {position: velocity, velocity: (force - damping * velocity) / mass, force: 0}},
            r"derivatives\[force\] belongs to none of the states \(position, velocity\)",
        ),
        (
            {"updates": {"held": 0}},
            r"updates\[held\] belongs to none of the discrete states \(none declared\)",
        ),
        ({"constraints": {"angle": 0}}, r"constraints\[angle\] belongs to none of the unknowns"),
        ({"mass": sympy.eye(3)}, r"mass has shape \(3, 3\), its states have 2 elements. Give \(2, 2\)"),
        ({"sample_time": "period"}, "sample_time 'period' is none of the parameters"),
        ({"outputs": {Quantity("encoder", "m"): sympy.true}}, "which is not a number. Use Piecewise"),
        ({"outputs": {Quantity("encoder", "m"): "position"}}, "'position' is not an expression"),
        ({"outputs": {Quantity("encoder", "m", shape=(2,)): [position]}}, "got 1 expressions for shape"),
        ({"name": "3"}, "name '3' can't become an identifier"),
        ({"name": 3}, "name is 3. Give text"),
        ({"states": (position, velocity)}, "states holds position, a Symbol. Give a Quantity"),
        ({"inputs": Quantity(force, "N")}, "inputs is Quantity.*Give a tuple"),
        ({"outputs": {"encoder": position}}, "outputs holds 'encoder', a str. Give a Quantity"),
        ({"derivatives": [velocity]}, "derivatives is .*Give a mapping"),
    ],
)
def test_what_is_not_well_formed_is_refused(changed: dict[str, object], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        slider(**changed)


def test_discrete_states_need_a_sample_time() -> None:
    with pytest.raises(ModelError, match="it has discrete states and no sample_time"):
        Model(name="m", discrete_states=(Quantity("held", "V"),), updates={"held": 0})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"lower": 2.0, "upper": 1.0}, "lower 2.0 is above upper 1.0"),
        ({"nominal": 3.0, "upper": 1.0}, r"nominal 3.0 is outside \[-inf, 1.0\]"),
        ({"nominal": float("nan")}, "nominal is NaN"),
        ({"upper": float("nan")}, "upper is NaN"),
        ({"shape": (0,)}, r"shape \(0,\) is not allowed"),
        ({"shape": (2, 2, 2)}, "is not allowed"),
        ({"shape": 3}, r"shape is 3. Give a tuple such as \(\) or \(3,\)"),
        ({"nominal": "1"}, "nominal is '1'. Give a number in 'm'"),
        ({"lower": None}, "lower is None. Give a number in 'm'"),
        ({"unit": 3}, "unit is 3. Give text such as"),
    ],
)
def test_bounds_and_shapes(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ModelError, match=f"quantity 'x': .*{message}"):
        Quantity(**{"symbol": "x", "unit": "m", **arguments})  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["", " ", "1x", "???", "2", "+"])
def test_names_that_cannot_become_identifiers(name: str) -> None:
    with pytest.raises(ModelError):
        Quantity(name, "m")


@pytest.mark.parametrize(
    ("name", "becomes"),
    [
        ("x_{1}", "x_1"),
        (r"\theta", "theta"),
        ("θ", "theta"),
        ("Δ", "Delta"),
        ("λ1", "lambda1"),
        ("a b", "a_b"),
    ],
)
def test_names_become_identifiers(name: str, becomes: str) -> None:
    assert identifier(name) == becomes


def test_units_by_row_have_to_fit_the_shape() -> None:
    with pytest.raises(ModelError, match="3 units for shape"):
        Quantity("x", ("m", "m", "rad"), shape=(2,))
    assert Quantity("x", ("m", "rad"), shape=(2, 2)).units == ("m", "m", "rad", "rad")


def test_quantities_are_real() -> None:
    with pytest.raises(ModelError, match="declared not real"):
        Quantity(sympy.Symbol("x", imaginary=True), "m")
    with pytest.raises(ModelError, match="Give a symbol, a name, a function of time"):
        Quantity(position + velocity, "m")


def test_one_name_with_two_assumptions_is_an_error_that_says_so() -> None:
    with pytest.raises(ModelError, match="to SymPy these are two symbols") as error:
        accelerated((force - damping * velocity) / sympy.Symbol("mass", positive=True))
    assert "positive=True" in str(error.value)
    assert "real=True" in str(error.value)


def test_definitions_are_ordered() -> None:
    lost, net = Quantity("lost", "N"), Quantity("net", "N")
    loss = damping * velocity
    right = net.symbol / mass
    model = accelerated(right, definitions={lost: loss, net: force - lost.symbol})
    difference = model.expand(model.expression("velocity")) - (force - damping * velocity) / mass
    assert sympy.simplify(difference) == 0
    with pytest.raises(ModelError, match=r"'lost' is defined later: definitions are ordered. Move it up"):
        accelerated(right, definitions={net: force - lost.symbol, lost: loss})
    with pytest.raises(ModelError, match="'lost' of definitions is used by no equation"):
        accelerated((force - damping * velocity) / mass, definitions={lost: loss})


# -- functions of time ----------------------------------------------------------------------------------


def test_a_pendulum_in_dynamicsymbols() -> None:
    q, t = dynamicsymbols("q"), dynamicsymbols._t
    rate = sympy.Derivative(q, t)
    gravity, length = sympy.symbols("gravity length", real=True)
    model = Model(
        name="pendulum",
        states=(Quantity(q, "rad"), Quantity(rate, "rad/s")),
        parameters=(Quantity(gravity, "m/s^2"), Quantity(length, "m")),
        derivatives={q: rate, rate: -gravity / length * sympy.sin(q)},
        outputs={Quantity("height", "m"): -length * sympy.cos(q)},
        crossings=(rate,),
    )
    assert list(model.symbols) == ["q", "q_dot", "gravity", "length", "height"]
    assert model.expression("q") == model["q_dot"]
    assert model.expression("q_dot") == -gravity / length * sympy.sin(model["q"])
    assert all(symbol.is_real for symbol in model.symbols.values())


def test_two_dynamicsymbols_and_an_independent_speed() -> None:
    q, u = dynamicsymbols("q u")
    model = Model(
        name="rolling", states=(Quantity(q, "m"), Quantity(u, "m/s")), derivatives={q: u, "u": 0 * u}
    )
    assert model.expression("q") == sympy.Symbol("u", real=True)


def test_a_derivative_left_in_an_equation_is_named() -> None:
    """Trap A8."""
    q, t = dynamicsymbols("q"), dynamicsymbols._t
    with pytest.raises(ModelError, match=r"derivatives\[q\] holds the derivative Derivative\(q\(t\), t\)"):
        Model(name="m", states=(Quantity(q, "m"),), derivatives={q: q.diff(t)})
    with pytest.raises(ModelError, match=r"holds the function r\(t\), which is not declared"):
        Model(name="m", states=(Quantity(q, "m"),), derivatives={q: dynamicsymbols("r")})


# -- real symbols (trap A1) -----------------------------------------------------------------------------


def shown(expression: sympy.Expr, *symbols: sympy.Basic) -> sympy.Basic:
    quantities = tuple(Quantity(symbol, "") for symbol in symbols)
    return Model(name="m", inputs=quantities, outputs={Quantity("shown", ""): expression}).expression("shown")


def test_symbols_without_assumptions_become_real() -> None:
    x, y = sympy.symbols("x y")
    real_x, real_y = sympy.symbols("x y", real=True)
    assert shown(sympy.Abs(x) + x, x) == sympy.Abs(real_x) + real_x
    assert shown(sympy.Abs(x).diff(x), x) == sympy.sign(real_x)
    assert shown(sympy.Abs(x * y).diff(x), x, y) == real_y * sympy.sign(real_x * real_y)
    assert shown(x + sympy.Abs(x).diff(x, 2), x) == real_x
    assert shown(sympy.Abs(sympy.sin(x)).diff(x), x) == sympy.sign(sympy.sin(real_x)) * sympy.cos(real_x)
    assert shown(sympy.re(x) + 2 * sympy.im(x) + sympy.conjugate(x), x) == 2 * real_x


def test_derivative_of_the_absolute_value_of_a_function_of_time() -> None:
    q, t = dynamicsymbols("q"), dynamicsymbols._t
    model = Model(
        name="m",
        inputs=(Quantity(q, "m"), Quantity(q.diff(t), "m/s")),
        outputs={
            Quantity("rate", "m/s"): sympy.Abs(q).diff(t),
            Quantity("slope", "1"): sympy.Abs(q).diff(q),
        },
    )
    assert model.expression("rate") == model["q_dot"] * sympy.sign(model["q"])
    assert model.expression("slope") == sympy.sign(model["q"])


# -- traps A5 and A7 ------------------------------------------------------------------------------------


def test_the_root_of_a_sum_of_squares_is_warned_about() -> None:
    x, y = sympy.symbols("x y", real=True)
    with pytest.warns(
        ModelWarning, match=r"outputs\[shown\] holds sqrt\(x\*\*2 \+ y\*\*2\), whose derivative is 0/0"
    ):
        shown(1 + sympy.sqrt(x**2 + y**2), x, y)
    with pytest.warns(ModelWarning):
        shown(x / sympy.sqrt(x**2 + y**2), x, y)
    # None of these is singular; warnings are errors here.
    shown(sympy.sqrt(x**2 + y**2 + 1) + x**2, x, y)
    Model(
        name="m",
        inputs=(Quantity(x, "m"),),
        parameters=(Quantity(y, "m", lower=0.1),),
        outputs={Quantity("distance", "m"): sympy.sqrt(x**2 + y**2)},
    )


def chain(start: sympy.Expr, depth: int) -> sympy.Expr:
    for _ in range(depth):
        start = sympy.sin(start, evaluate=False)
    return start


def test_deep_chains() -> None:
    x = sympy.Symbol("x", real=True)
    deep = chain(x, 20_000)
    assert shown(deep, x) is deep
    # Here the leaf is replaced, so every node above it is built again.
    q = dynamicsymbols("q")
    replaced = shown(chain(q, 20_000), q)
    interned = graph.intern([replaced])
    assert len(interned.nodes) == 20_001
    assert interned.nodes[0].expression == sympy.Symbol("q", real=True)


def test_a_chain_of_sums_and_functions_with_an_undeclared_leaf() -> None:
    x, stray = sympy.symbols("x stray", real=True)
    deep: sympy.Expr = stray
    for _ in range(20_000):
        deep = sympy.Add(sympy.sin(deep, evaluate=False), x, evaluate=False)
    with pytest.raises(ModelError, match="uses undeclared symbol 'stray'"):
        shown(deep, x)


def test_a_sum_of_many_terms() -> None:
    x = sympy.Symbol("x", real=True)
    terms = [sympy.Pow(x, i + 2, evaluate=False) for i in range(100_000)]
    model_sum = shown(sympy.Add(*terms, evaluate=False), x)
    assert len(model_sum.args) == 100_000


# -- graphs ---------------------------------------------------------------------------------------------


def test_equal_subexpressions_are_one_node() -> None:
    x = sympy.Symbol("x", real=True)

    def doubled() -> sympy.Expr:
        result: sympy.Expr = x
        for _ in range(40):
            result = sympy.Add(
                sympy.sin(result, evaluate=False), sympy.sin(result, evaluate=False), evaluate=False
            )
        return result

    interned = graph.intern([doubled(), doubled()])
    assert len(interned.nodes) == 81
    assert interned.roots[0] == interned.roots[1]


def test_below_and_leaves() -> None:
    x, y = sympy.symbols("x y", real=True)
    interned = graph.intern([x + 2 * y, sympy.sin(x)])
    assert interned.leaves(interned.roots[1]) == [x]
    assert set(interned.leaves(interned.roots[0])) == {x, y}
    assert interned.below(interned.roots[1])[-1] == interned.roots[1]


# -- shapes and variants --------------------------------------------------------------------------------


def test_vectors_and_matrices() -> None:
    q = Quantity("q", "rad", shape=(2,))
    gain = Quantity("gain", "1/s", shape=(2, 2))
    model = Model(
        name="network",
        states=(q,),
        parameters=(gain,),
        derivatives={"q": gain.array * q.array},
        outputs={Quantity("tip", ("m", "rad"), shape=(2,)): [0, q.elements[1]]},
    )
    assert [equation.symbol.name for equation in model.of_kind("derivative")] == ["q_0", "q_1"]
    assert model.expression("q_0") == model["gain_0_0"] * model["q_0"] + model["gain_0_1"] * model["q_1"]


def test_replace_exchanges_a_definition_and_drops_what_is_unused() -> None:
    lost = Quantity("lost", "N")
    model = accelerated((force - lost.symbol) / mass, definitions={lost: damping * velocity})
    drag = sympy.Symbol("drag", real=True)
    variant = model.replace(
        name="dragged",
        definitions={"lost": drag * velocity * sympy.Abs(velocity)},
        parameters=(Quantity(drag, "N*s^2/m^2"),),
    )
    assert [quantity.name for quantity in variant.parameters] == ["mass", "drag"]
    assert model.expression("lost") == damping * velocity
    with pytest.raises(ModelError, match=r"there is no 'losses'. It has: lost"):
        model.replace(definitions={"losses": damping * velocity})


def test_replace_drops_definitions_that_nothing_uses() -> None:
    lost, net = Quantity("lost", "N"), Quantity("net", "N")
    definitions = {lost: damping * velocity, net: force - lost.symbol}
    model = accelerated(
        net.symbol / mass, definitions=definitions, integrals={"force": Quantity("impulse", "N*s")}
    )
    free = model.replace(definitions={"net": force})
    assert [quantity.name for quantity in free.definitions] == ["net"]
    assert [quantity.name for quantity in free.parameters] == ["mass"]
    assert list(free.integrals) == ["force"]
    at_rest = model.replace(derivatives={"velocity": 0 * velocity})
    assert not at_rest.definitions
    assert not at_rest.inputs
    assert not at_rest.integrals
    # One that is given has to be used: a slip would go unseen otherwise.
    with pytest.raises(ModelError, match="'spare' of definitions is used by no equation"):
        model.replace(definitions={Quantity("spare", "N"): force})


def test_looking_up_what_is_not_there_lists_what_is() -> None:
    model = slider()
    for look_up in (model.__getitem__, model.role_of, model.expression):
        with pytest.raises(ModelError, match="'speed'"):
            look_up("speed")
