"""What is known of versions of Spark, by their names alone."""

import pytest

from steelyard.spark.versions import socket_leak


@pytest.mark.parametrize(
    ("version", "fixed"),
    [
        ("4.1.0", "4.1.4"),
        ("4.1.1", "4.1.4"),
        ("4.1.3", "4.1.4"),
        ("4.1.1.dbr", "4.1.4"),
        ("4.1.1-amzn-0", "4.1.4"),
        ("4.1.3-SNAPSHOT", "4.1.4"),
        ("4.2.0", "4.2.1"),
        ("4.2.0.dev1", "4.2.1"),
    ],
)
def test_a_version_that_leaks_names_the_one_that_does_not(version, fixed):
    """Whatever a vendor appends to its number."""
    sentence = socket_leak(version)
    assert sentence is not None
    assert sentence.startswith(f"Spark {version} leaks a socket")
    assert sentence.endswith(f"use Spark {fixed} or newer")


@pytest.mark.parametrize(
    "version",
    ["4.1.4", "4.1.10", "4.1.4-SNAPSHOT", "4.1.4-amzn-1", "4.2.1", "4.3.0", "5.0.0", "4.1", "main"],
)
def test_a_version_that_closes_its_sockets_or_has_no_number_is_fine(version):
    """The first fixed one, later ones, and what cannot be compared."""
    assert socket_leak(version) is None
