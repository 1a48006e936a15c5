"""The addresses of control paths, and their form in messages."""

import traceback

import pytest

from steelyard.control.redaction import without_secrets
from steelyard.control.store import ControlStore


@pytest.mark.parametrize("path", ["http://me:secret@host/control", "file://host/a", "dbfs:/a"])
def test_other_file_systems_are_rejected(path):
    """The message names the supported file systems."""
    with pytest.raises(ValueError, match=r"a shared mount .*s3://, gs://, .* hdfs://") as raised:
        ControlStore(path)
    assert "secret" not in str(raised.value)


def test_an_unreachable_store_is_rejected(bucket):
    """The server does not listen, or the bucket does not exist."""
    for address in (
        bucket.format("x").replace("@steelyard/", "@nowhere/"),
        "s3://a:b@c/d?endpoint_override=127.0.0.1:1&scheme=http&region=us-east-1",
    ):
        with pytest.raises(ValueError, match=r"control: .*s3://\w+/\w cannot be"):
            ControlStore(address).prepare()


def test_a_file_address_is_a_path(tmp_path):
    """Escaped characters are decoded."""
    assert ControlStore(f"file://{tmp_path}/a%20b").address == str(tmp_path / "a b")
    assert ControlStore(tmp_path).address == str(tmp_path)


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("s3://AKIA:SEC/RET@bucket/c", "s3://bucket/c"),
        ("s3://AKIA:SEC@RET@bucket/c?region=eu", "s3://bucket/c"),
        ("s3://AKIA@bucket/c", "s3://bucket/c"),
        ("s3://AKIA%3ASEC/RET@bucket/c", "s3://bucket/c"),
        ("s3:/AKIA:SECRET@bucket/c", "s3://bucket/c"),
        ("s3:AKIA:SECRET@bucket", "s3://bucket"),
        ("AKIA:SECRET@bucket/c", "bucket/c"),
        ("s3://bucket/c?secret_key=SECRET&x=y", "s3://bucket/c"),
        ("s3://bucket/a@b", "s3://bucket/a@b"),
        ("s3://bucket/c#SECRET", "s3://bucket/c"),
        ("/a/b@c", "/a/b@c"),
    ],
)
def test_addresses_are_shown_without_secrets(address, shown):
    """A password may contain slashes, which users should escape and often do not."""
    assert shown == without_secrets(address)


@pytest.mark.parametrize(
    "address",
    [
        "s3://AKIA:SEC/RET@bucket/c",
        "s3://AKIA:SEC%2FRET@bucket:none/c",
        "gs://AKIA:SEC/RET@/?x=SECRET",
        "hdfs://AKIA:SEC/RET@nowhere.invalid:1/c",
        "abfss://AKIA:SEC/RET@x/c?client_secret=SECRET",
        "dbfs://AKIA:SEC/RET@bucket/c",
    ],
)
def test_an_error_contains_no_secret(address):
    """Neither the message nor the causes of the error quote the address with its secrets."""
    with pytest.raises(ValueError, match="control: ") as raised:
        ControlStore(address).prepare()
    printed = "".join(traceback.format_exception(raised.value))
    message = printed[printed.rindex("ValueError: ") :]
    for secret in ("SEC/RET", "SEC%2FRET", "SECRET", "AKIA", "RET"):
        assert secret not in message
    assert raised.value.__cause__ is None or "SEC" not in str(raised.value.__cause__)
    assert raised.value.__context__ is None or "SEC" not in str(raised.value.__context__)
