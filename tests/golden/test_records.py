"""Formats, hashes, plans, routes and simulations are what they were."""

import pytest

from tests.golden.records import HERE, RECORDS, text_of


@pytest.mark.parametrize("name", RECORDS)
def test_an_output_is_as_recorded(name):
    """A checkpoint, a control path or a figure of an earlier version stays valid."""
    assert (HERE / f"{name}.json").read_text() == text_of(name)
