"""What the state of a query stands for: compared when the query is started again.

Spark's own check knows the types of a state only: a sum that becomes a maximum passes it.
"""

import json
from dataclasses import asdict, dataclass, fields


@dataclass(frozen=True)
class Definition:
    """The settings of a result on which its state depends.

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
    """Their names and types."""
    window: str | None = None
    placement: str | None = None
    states: tuple[str, ...] = ()
    """The types of the aggregators' states."""

    def to_json(self) -> str:
        return json.dumps(asdict(self), separators=(",", ":"))

    def require_same(self, before: str) -> None:
        """Refuse to go on from the state of another definition, in its JSON.

        Fields that the other one lacks, because an older version wrote it, are not compared.
        """
        try:
            was, now = json.loads(before), json.loads(self.to_json())
        except ValueError:
            return
        for field in fields(self):
            if isinstance(was, dict) and was.get(field.name, now[field.name]) != now[field.name]:
                raise ValueError(
                    f"the checkpoint is of a query with the {field.name} "
                    f"{_shown(was[field.name])}, and this query has {_shown(now[field.name])}: "
                    "keep them as they were, or use a new checkpoint"
                )


def _shown(setting: list[str] | str | None) -> str:
    return (", ".join(setting) if isinstance(setting, list) else setting) or "none"
