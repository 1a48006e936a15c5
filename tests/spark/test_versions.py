"""Known defects of Spark versions follow from the version number."""

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
def test_the_message_of_a_leaking_version_names_the_fixed_version(version, fixed):
    """Suffixes of vendors are ignored."""
    sentence = socket_leak(version)
    assert sentence is not None
    assert sentence.startswith(f"Spark {version} leaks a socket")
    assert sentence.endswith(f"use Spark {fixed} or newer")


@pytest.mark.parametrize(
    "version",
    [
        "4.0.5",
        "4.1.4",
        "4.1.10",
        "4.1.4-SNAPSHOT",
        "4.1.4-amzn-1",
        "4.2.1",
        "4.3.0",
        "5.0.0",
        "4.1",
        "main",
    ],
)
def test_a_fixed_or_unknown_version_has_no_leak(version):
    """These are the first fixed version, later ones, and versions that cannot be compared."""
    assert socket_leak(version) is None
