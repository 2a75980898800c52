"""Names: what an identifier may be, and the error of a malformed model. Loads nothing."""

import re
import unicodedata


class ModelError(ValueError):
    """A model, or one of its parts, is not well formed. The message says which, where and how to mend it."""


def identifier(name: str) -> str:
    """Return the identifier that generated code uses for a name, for instance ``x_1`` for ``x_{1}``.

    Letters, digits and underscores are kept; Greek letters are spelled out; every other run of characters
    becomes one underscore, and underscores at the ends go unless the name begins with one.

    Raises
    ------
    ModelError
        If nothing is left of the name that can begin an identifier.
    """
    spelled = "".join(_spell(character) for character in name)
    cleaned = re.sub(r"_+", "_", re.sub(r"[^0-9A-Za-z_]+", "_", spelled)).strip("_")
    if not cleaned or cleaned[0].isdigit():
        raise ModelError(
            f"name {name!r} can't become an identifier (it would be {cleaned!r}). "
            "Allowed are letters, digits and underscores, beginning with a letter. Choose another name."
        )
    return cleaned


def _spell(character: str) -> str:
    name = unicodedata.name(character, "")
    if name.startswith("GREEK"):
        letter = name.split(" LETTER ")[-1].split(" WITH ")[0].lower().replace("lamda", "lambda")
        return letter.capitalize() if "CAPITAL" in name else letter
    return character
