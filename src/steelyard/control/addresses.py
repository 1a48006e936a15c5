"""Open the folder that a path or an address names.

A path or an address enters; `Files` leave. A folder on a local disk or a shared mount becomes
`LocalFiles`. A folder that `pyarrow.fs` can open (S3, Google's and Azure's stores, HDFS) becomes
`RemoteFiles`.
"""

import os
from pathlib import Path
from urllib.parse import unquote, urlsplit

from steelyard.control.files import Files
from steelyard.control.local_files import LocalFiles
from steelyard.control.redaction import redacted, without_secrets

REMOTE = ("s3", "gs", "gcs", "abfs", "abfss", "hdfs", "viewfs")
"""The URL schemes that `pyarrow.fs` opens."""


def files_at(path: str | os.PathLike[str]) -> Files:
    """Open a path, a file: address, or an address that `pyarrow.fs` opens."""
    path = os.fspath(path)
    try:
        address = urlsplit(path)
    except ValueError as error:
        reason = redacted(str(error), path)
        shown = without_secrets(path)
        raise ValueError(f"control: {shown!r} is not a valid address: {reason}") from None
    scheme = address.scheme
    if not scheme:
        return LocalFiles(Path(path).absolute())
    if scheme == "file" and address.netloc in ("", "localhost"):
        return LocalFiles(Path(unquote(address.path)))
    if scheme in REMOTE:
        from steelyard.control.remote_files import RemoteFiles  # loads pyarrow

        try:
            return RemoteFiles(path)
        except (OSError, ValueError, NotImplementedError) as error:
            reason = redacted(str(error), path)
        # Raised outside the handler, because the original error may quote the secrets.
        raise ValueError(f"control: {without_secrets(path)!r} cannot be reached: {reason}")
    remote = ", ".join(f"{scheme}://" for scheme in REMOTE)
    raise ValueError(
        f"control: {without_secrets(path)!r} must be a folder on a local disk or a shared mount "
        f"(a plain path or file:/...), or on one of {remote}"
    )
