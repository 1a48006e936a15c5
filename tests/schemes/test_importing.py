"""The option `--import` makes the schemes of a module available on the command line."""

import sys

import pytest
from typer.testing import CliRunner

from steelyard import schemes
from steelyard.cli import app
from tests.documents import python_blocks

WIDE = {"COLUMNS": "300", "NO_COLOR": "1", "TERM": "dumb"}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Run commands in a folder of their own; forget the modules that they import."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


def run(*arguments):
    """Run a command on a wide terminal."""
    return CliRunner().invoke(app, arguments, env=WIDE)


def test_the_scheme_of_the_page_is_compared_and_simulated(folder):
    """`docs/own-schemes.md` begins with this module, and names these options."""
    (folder / "my_schemes.py").write_text(python_blocks("docs/own-schemes.md")[0])
    compared = run("compare", "--import", "my_schemes", "--messages", "2000", "--workers", "5")
    assert compared.exit_code == 0, compared.output
    assert "least-loaded" in compared.output
    simulated = run(
        *("simulate", "--scheme", "least-loaded", "--import", "my_schemes"),
        *("--fraction", "0.0005", "--slots", "2", "--workers", "3"),
    )
    assert simulated.exit_code == 0, simulated.output
    assert "least-loaded" in simulated.output


def test_a_scheme_in_a_file_of_settings_can_be_own(folder):
    """The module is imported before the file is read."""
    (folder / "my_schemes.py").write_text(python_blocks("docs/own-schemes.md")[0])
    (folder / "it.toml").write_text('scheme = "least-loaded"\nfraction = 0.0005\nslots = 2\n')
    simulated = run("simulate", "it.toml", "--import", "my_schemes")
    assert simulated.exit_code == 0, simulated.output
    assert run("simulate", "it.toml", "--import", "my_schemes").exit_code == 0


BROKEN = """
from dataclasses import dataclass
from steelyard import schemes

class OneMore(schemes.Router):
    def choose(self, key_hash, loads):
        return self.bins

@schemes.register
@dataclass(frozen=True)
class Broken(schemes.Scheme):
    name = "broken"
    def router(self, bins, seed=0):
        return OneMore(self, bins, seed)
"""


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("my_schemes.py", "", "import must be the name of a module, such as my_schemes, got"),
        ("../mine", "", "import must be the name of a module, such as my_schemes, got '../mine'"),
        ("nothing_there", None, "cannot be imported: ModuleNotFoundError: No module named"),
        ("with_defect", "1 / 0", "'with_defect' cannot be imported: ZeroDivisionError: division"),
        (
            "without_scheme",
            "",
            "'without_scheme' registers no scheme; write @steelyard.schemes",
        ),
        ("broken", BROKEN, "the scheme 'broken' breaks a promise: the bin that choose returns mus"),
        (
            "unnamed",
            BROKEN.replace('name = "broken"', ""),
            "'unnamed' cannot be imported: ValueError: register: Broken needs a name of lower-case",
        ),
    ],
)
def test_a_module_without_a_working_scheme_is_refused(folder, name, text, sentence):
    """One sentence names the module or the scheme; the exit code is 2."""
    if text is not None:
        (folder / f"{name.removesuffix('.py').strip('./')}.py").write_text(text)
    for command in ("compare", "simulate"):
        refused = run(command, "--import", name)
        schemes._OWN.clear()
        sys.modules.pop(name, None)
        assert refused.exit_code == 2, refused.output
        assert sentence in refused.output
