"""The model that the documentation writes is one."""

from pathlib import Path

from mechsmith.symbolic.model import Model
from mechsmith.symbolic.verify import verify

PAGE = Path(__file__).parents[2] / "docs" / "friction.md"


def test_the_next_model_is_verified() -> None:
    blocks = [block.split("```")[0] for block in PAGE.read_text().split("```python\n")[1:]]
    (source,) = (block for block in blocks if "def make_hess_soom" in block)
    names: dict[str, object] = {}
    exec(compile(source, str(PAGE), "exec"), names)
    make = names["make_hess_soom"]
    for motion in ("rotary", "linear"):
        model = make(motion=motion)  # type: ignore[operator]
        assert isinstance(model, Model)
        assert [verdict.status for verdict in verify(model)] == ["proved", "proved"]
