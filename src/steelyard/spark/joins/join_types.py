"""The types of joins: the text of a user enters, one of six types leaves."""

from enum import Enum


class JoinType(Enum):
    """A type of join, by Spark's shortest name for it."""

    INNER = "inner"
    LEFT = "left"
    RIGHT = "right"
    FULL = "full"
    SEMI = "semi"
    ANTI = "anti"

    @property
    def keeps_big(self) -> bool:
        """Whether rows of `big` without a match are in the result."""
        return self in (JoinType.LEFT, JoinType.FULL, JoinType.ANTI)

    @property
    def keeps_small(self) -> bool:
        """Whether rows of `small` without a match are in the result."""
        return self in (JoinType.RIGHT, JoinType.FULL)

    @property
    def has_pairs(self) -> bool:
        """Whether the result has a row for each pair of matching rows."""
        return self not in (JoinType.SEMI, JoinType.ANTI)


_LONGER = {
    "outer": "full",
    "fullouter": "full",
    "leftouter": "left",
    "rightouter": "right",
    "leftsemi": "semi",
    "leftanti": "anti",
}


def join_type(how: object) -> JoinType:
    """Return the type of join that Spark calls by this text.

    >>> join_type("LEFT_OUTER"), join_type("outer")
    (<JoinType.LEFT: 'left'>, <JoinType.FULL: 'full'>)
    >>> join_type("cross")
    Traceback (most recent call last):
    ...
    ValueError: how: a 'cross' join has no key whose rows could be balanced; use
    big.crossJoin(small)
    """
    if not isinstance(how, str):
        raise TypeError(f"how must be the name of a type of join, such as 'left', got {how!r}")
    name = how.lower().replace("_", "")
    if name == "cross":
        raise ValueError(
            f"how: a {how!r} join has no key whose rows could be balanced; use big.crossJoin(small)"
        )
    try:
        return JoinType(_LONGER.get(name, name))
    except ValueError:
        known = ", ".join(repr(kind.value) for kind in JoinType)
        raise ValueError(
            f"how must be one of {known}, or another name of Spark for one of these, got {how!r}"
        ) from None
