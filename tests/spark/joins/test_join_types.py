"""The types of joins have the names that Spark accepts."""

import pytest

from steelyard.spark.joins.join_types import JoinType, join_type

NAMES = {
    JoinType.INNER: "inner Inner INNER",
    JoinType.LEFT: "left LEFT leftouter left_outer LEFT_OUTER",
    JoinType.RIGHT: "right rightouter right_outer RightOuter",
    JoinType.FULL: "full outer fullouter full_outer FULL_OUTER",
    JoinType.SEMI: "semi leftsemi left_semi",
    JoinType.ANTI: "anti leftanti left_anti Left_Anti",
}


@pytest.mark.parametrize("kind", JoinType)
def test_upper_case_and_underscores_do_not_matter(kind):
    """These are all names that `DataFrame.join` documents."""
    assert {join_type(name) for name in NAMES[kind].split()} == {kind}


@pytest.mark.parametrize(
    ("how", "error", "sentence"),
    [
        ("cross", ValueError, r"how: a 'cross' join has no key .* use big.crossJoin\(small\)"),
        ("outter", ValueError, "how must be one of 'inner', 'left', 'right', 'full', 'semi', 'a"),
        (None, TypeError, "how must be the name of a type of join, such as 'left', got None"),
    ],
)
def test_other_types_of_joins_are_refused(how, error, sentence):
    """The sentence names those that are allowed."""
    with pytest.raises(error, match=sentence):
        join_type(how)
