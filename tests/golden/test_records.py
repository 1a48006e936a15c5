"""Formats, hashes, plans, routes and simulations equal the recorded ones."""

import pytest

from tests.golden.records import HERE, RECORDS, text_of


@pytest.mark.parametrize("name", RECORDS)
def test_an_output_equals_its_record(name):
    """Checkpoints, control paths and figures of earlier versions stay valid."""
    assert (HERE / f"{name}.json").read_text() == text_of(name)
