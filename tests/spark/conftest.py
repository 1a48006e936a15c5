"""Record which features the installed version of Spark supports."""

import json
from pathlib import Path


def pytest_addoption(parser):
    """Add the folder for the results of tests/spark/test_features.py."""
    parser.addoption("--features", metavar="FOLDER", help="write the supported features there")


def pytest_configure(config):
    """Record the results if a folder is given."""
    folder = config.getoption("--features", default=None)
    if folder is not None:
        mode = "connect" if config.getoption("--connect") else "classic"
        config.pluginmanager.register(_Record(Path(folder), mode))


class _Record:
    """Writes one file when all tests have ended.

    Args:
        folder: The folder of the file.
        mode: "classic" or "connect".
    """

    def __init__(self, folder, mode):
        self.folder, self.mode = folder, mode
        self.version = None
        self.found = {}

    def pytest_runtest_logreport(self, report):
        """Note the result of a test of a feature."""
        properties = dict(report.user_properties)
        self.version = properties.pop("spark", self.version)
        if report.when != "call" or "spark" not in dict(report.user_properties):
            return
        name = report.nodeid.partition("[")[2].removesuffix("]")
        self.found[name] = "fails" if report.failed else next(iter(properties.values()))

    def pytest_sessionfinish(self):
        """Write the file, if a test of a feature has run."""
        if self.version is None:
            return
        minor = ".".join(self.version.split(".")[:2])
        text = {"spark": self.version, "mode": self.mode, "features": self.found}
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{minor}-{self.mode}.json"
        path.write_text(json.dumps(text, indent=1) + "\n")
