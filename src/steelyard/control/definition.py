"""The definition of a query's state, which is compared when the query restarts.

Spark itself compares only the types of a state. It would accept a maximum that replaces a sum.
"""

import json
from dataclasses import asdict, dataclass, fields


@dataclass(frozen=True)
class Definition:
    """The settings of a query that determine the meaning of its state.

    >>> sums = Definition(keys=("page string",), aggregators=("Sum(column='id')",))
    >>> most = Definition(keys=("page string",), aggregators=("Max(column='id')",))
    >>> sums.require_same(sums.to_json())
    >>> most.require_same(sums.to_json())
    Traceback (most recent call last):
    ValueError: the checkpoint is of a query with the aggregators Sum(column='id'), and this query
    has Max(column='id'): keep them as they were, or use a new checkpoint
    """

    aggregators: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    """The names and the types of the key columns."""
    window: str | None = None
    placement: str | None = None
    states: tuple[str, ...] = ()
    """The types of the states of the aggregators."""

    def to_json(self) -> str:
        return json.dumps(asdict(self), separators=(",", ":"))

    def require_same(self, before: str) -> None:
        """Raise a ValueError if an earlier definition, given as JSON, differs from this one.

        Fields that the earlier definition lacks are not compared: an older release wrote it.
        """
        try:
            old, new = json.loads(before), json.loads(self.to_json())
        except ValueError:
            return
        for field in fields(self):
            if isinstance(old, dict) and old.get(field.name, new[field.name]) != new[field.name]:
                raise ValueError(
                    f"the checkpoint is of a query with the {field.name} "
                    f"{_as_text(old[field.name])}, and this query has {_as_text(new[field.name])}: "
                    "keep them as they were, or use a new checkpoint"
                )


def _as_text(setting: list[str] | str | None) -> str:
    return (", ".join(setting) if isinstance(setting, list) else setting) or "none"
