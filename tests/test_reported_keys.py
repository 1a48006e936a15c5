"""Keys are shown, hashed or hidden in reports."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import steelyard as sy
from steelyard.executor.stream_source import hot_keys
from steelyard.reported_keys import DEFAULT, HIDDEN, SECRET, ReportedKeys


@given(st.text(), st.text(), st.text(max_size=5), st.text(max_size=5))
def test_a_hash_depends_on_the_key_and_the_secret_only(key, other, secret, another):
    """Equal keys have equal hashes, and other keys or secrets have other hashes."""
    shown = ReportedKeys("hashed", secret).shown
    assert shown(key) == shown(key)
    assert (shown(key) == shown(other)) == (key == other)
    if secret.rstrip("\0") != another.rstrip("\0"):  # HMAC fills short secrets with zeros
        assert shown(key) != ReportedKeys("hashed", another).shown(key)


@given(st.text(alphabet="abc", min_size=3))
def test_hashed_and_hidden_keys_do_not_contain_the_key(key):
    for mode in ("hashed", "hidden"):
        assert f"<{key}>" not in ReportedKeys(mode).shown(f"<{key}>")


def test_the_argument_precedes_the_environment(monkeypatch):
    """The secret comes from the environment in both cases, and is never shown."""
    monkeypatch.setenv(DEFAULT, "hidden")
    monkeypatch.setenv(SECRET, "do not tell")
    assert ("hidden", "do not tell") == (ReportedKeys.of().mode, ReportedKeys.of().secret)
    assert "hashed" == ReportedKeys.of("hashed").mode
    assert "do not tell" not in repr(ReportedKeys.of())
    monkeypatch.setenv(DEFAULT, "")
    assert "plain" == ReportedKeys.of().mode


def test_a_value_that_is_not_allowed_is_refused(monkeypatch):
    """The error names the argument, or the environment variable."""
    with pytest.raises(ValueError, match="report_keys must be one of plain, hashed, hidden; got"):
        sy.Balance(report_keys="yes")
    monkeypatch.setenv(DEFAULT, "yes")
    with pytest.raises(ValueError, match="STEELYARD_REPORT_KEYS must be one of plain"):
        ReportedKeys.of()


def test_each_column_of_a_hot_key_is_hashed_and_a_null_is_not():
    """A hashed key has the same counts as a plain one; a hidden one is not reported."""
    rows = pa.record_batch({"a": ["x"] * 3, "b": pa.nulls(3, pa.string())})
    buckets = np.zeros(3, np.int64)
    hashed = ReportedKeys("hashed", "s")
    assert (("x, None", 3),) == hot_keys(rows, ("a", "b"), buckets)
    assert ((f"{hashed.shown('x')}, None", 3),) == hot_keys(rows, ("a", "b"), buckets, hashed)
    assert () == hot_keys(rows, ("a", "b"), buckets, ReportedKeys("hidden"))
    assert (HIDDEN, None) == ReportedKeys("hidden").shown_columns(("x", None))
