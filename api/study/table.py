"""Reading TOML tables key by key: every key is known, every value has its type, or there is an error that says so."""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


class StudyError(ValueError):
    """A study that can't be understood; the message names the file, the table and the key."""


def nearest(name: str, names: Sequence[str]) -> str:
    """Return " Did you mean ...?" for the nearest of some names, or nothing."""
    close = difflib.get_close_matches(name, list(names), n=1, cutoff=0.5)
    return f" Did you mean {close[0]!r}?" if close else ""


@dataclass(frozen=True)
class Table:
    """One table of a TOML file.

    Parameters
    ----------
    where : str
        File and table, for messages: ``study.toml: [model]``.
    values : mapping of key to value
        As `tomllib` gives them.
    """

    where: str
    values: Mapping[str, Any]

    def only(self, *allowed: str) -> None:
        """Raise `StudyError` for the first key that is none of the allowed ones; it names the nearest."""
        for key in self.values:
            if key not in allowed:
                raise StudyError(
                    f"{self.where}: there is no key {key!r}.{nearest(key, allowed)} Allowed: {', '.join(allowed) or 'none'}."
                )

    def __contains__(self, key: str) -> bool:
        return key in self.values

    def _get(self, key: str, kind: type | tuple[type, ...], words: str) -> Any:
        if key not in self.values:
            raise StudyError(f"{self.where}: {key!r} is missing. Give {words}.")
        value = self.values[key]
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise StudyError(f"{self.where}: {key} is {value!r}; it must be {words}.")
        return value

    def text(self, key: str, default: str | None = None) -> str:
        """Return a text; required when there is no default."""
        if default is not None and key not in self.values:
            return default
        return str(self._get(key, str, "a text"))

    def number(self, key: str, default: float | None = None) -> float:
        """Return a number; required when there is no default."""
        if default is not None and key not in self.values:
            return default
        return float(self._get(key, (int, float), "a number"))

    def integer(self, key: str, default: int | None = None) -> int:
        """Return a whole number; required when there is no default."""
        if default is not None and key not in self.values:
            return default
        return int(self._get(key, int, "a whole number"))

    def truth(self, key: str, default: bool) -> bool:
        """Return true or false."""
        return bool(self._get(key, bool, "true or false")) if key in self.values else default

    def choice(self, key: str, allowed: Sequence[str], default: str | None = None) -> str:
        """Return one of some texts."""
        value = self.text(key, default)
        if value not in allowed:
            raise StudyError(
                f"{self.where}: {key} is {value!r}.{nearest(value, allowed)} Allowed: {', '.join(allowed)}."
            )
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of texts; empty when there is none."""
        if key not in self.values:
            return ()
        values = self._get(key, list, "a list of texts")
        if not all(isinstance(value, str) for value in values):
            raise StudyError(f"{self.where}: {key} is {values!r}; it must be a list of texts.")
        return tuple(values)

    def table(self, key: str) -> "Table":
        """Return a table in this one; empty when there is none."""
        values = self._get(key, dict, "a table") if key in self.values else {}
        return Table(
            f"{self.where}.{key}" if not self.where.endswith("]") else f"{self.where[:-1]}.{key}]", values
        )

    def tables(self, key: str) -> tuple["Table", ...]:
        """Return an array of tables; empty when there is none."""
        if key not in self.values:
            return ()
        values = self._get(key, list, f"an array of tables, each under [[{key}]]")
        if not all(isinstance(value, dict) for value in values):
            raise StudyError(f"{self.where}: {key} must be an array of tables, each under [[{key}]].")
        file = self.where.partition(":")[0]
        return tuple(Table(f"{file}: [[{key}]] number {i + 1}", value) for i, value in enumerate(values))
