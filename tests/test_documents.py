"""Check that the documentation is complete and correct.

Python examples that need Spark are run in tests/spark.
"""

import ast
import importlib
import inspect
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator

import pytest
import typer.main
import yaml

import steelyard
from steelyard.cli import app
from tests.documents import (
    BATCH,
    NOTEBOOKS,
    PLAIN,
    REAL_TIME,
    ROOT,
    STREAMS,
    commands,
    pages,
    python_blocks,
    run_python,
    text_of,
)

PACKAGES = [
    "aggregators",
    "apps",
    "datasets",
    "delegation",
    "doctor",
    "metrics",
    "schemes",
    "simulator",
]


@pytest.mark.parametrize("page", PLAIN)
def test_python_without_spark_runs(page):
    """The blocks of a page run one after the other, with shared names."""
    assert run_python(page, {"__name__": "guide"})


def test_every_page_with_python_is_run():
    """Each page with Python is in exactly one of the lists."""
    assert sorted(PLAIN + BATCH + STREAMS + REAL_TIME + NOTEBOOKS) == sorted(
        filter(python_blocks, pages())
    )


# Commands.


def options_of(command):
    """Return all names of all options of a command."""
    return {option for it in command.params for option in (*it.opts, *it.secondary_opts)}


def known_commands():
    """Yield the words of every command, and its options."""
    top = typer.main.get_command(app)
    for name, command in top.commands.items():
        yield (name,), options_of(command)
        for inner, own in getattr(command, "commands", {}).items():
            yield (name, inner), options_of(own)


KNOWN = dict(known_commands())
ALWAYS = {"--help", "-h"}


def problems_of(line: str) -> Iterator[str]:
    """Yield the errors in a line, if the line is a steelyard command."""
    words = shlex.split(line, comments=True)
    if words and words[0].endswith("bin/steelyard"):
        words[0] = "steelyard"
    if words[:1] != ["steelyard"] or not re.match("[a-z]", "".join(words[1:2])):
        return
    named = next((words[1:n] for n in (3, 2) if tuple(words[1:n]) in KNOWN), None)
    if named is None:
        yield f"there is no command {words[1]!r}"
        return
    given = {word.split("=")[0] for word in words if word.startswith("--")}
    for option in sorted(given - KNOWN[tuple(named)] - ALWAYS):
        yield f"{' '.join(named)} has no option {option}"


@pytest.mark.parametrize("page", pages())
def test_commands_and_their_options_exist(page):
    """Every steelyard command of a page can be typed."""
    lines = [line for line in commands(page) if re.match(r"\S*steelyard ", line)]
    assert [(line, problem) for line in lines for problem in problems_of(line)] == []
    every = set().union(*KNOWN.values()) | ALWAYS
    alone = [line.split()[0] for line in commands(page) if re.match(r"--[a-z]", line)]
    assert [option for option in alone if option.split("=")[0] not in every] == []


def test_a_wrong_command_is_found():
    """The check of commands reports unknown commands and options."""
    assert list(problems_of("steelyard dokter x")) == ["there is no command 'dokter'"]
    assert list(problems_of("steelyard workers drain 3 --kontrol x")) == [
        "workers drain has no option --kontrol"
    ]
    assert list(problems_of("steelyard workers drain 3 --control x  # --nonsense")) == []


@pytest.mark.parametrize("page", pages())
def test_make_targets_exist(page):
    """Every `make` target that a page names is in the Makefile."""
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = [line.split()[1] for line in commands(page) if re.match(r"make [a-z]", line)]
    assert [target for target in named if target not in targets] == []


# Messages and names of the code.


def literals() -> Iterator[str]:
    """Yield every text in the code, with … in place of inserted values."""
    for file in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.JoinedStr):
                parts = [it.value if isinstance(it, ast.Constant) else "…" for it in node.values]
                yield "".join(parts)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value.replace("%s", "…")


def test_messages_in_the_troubleshooting_table_are_in_the_code():
    """A user who searches the page for an error message finds it."""
    table = text_of("docs/operations.md").split("## Troubleshooting")[1]
    quoted = re.findall(r'^\| "(.*?)"(?: \(in the log\))? \|', table, re.MULTILINE)
    assert len(quoted) > 15
    messages = list(literals())
    assert [text for text in quoted if not any(text.rstrip("… ") in it for it in messages)] == []


def test_files_that_pages_name_exist():
    """The tables of `how-it-works.md` name files of the package."""
    named = re.findall(r"`((?:\w+/)*(?:\w+\.py|\w+/))`", text_of("docs/how-it-works.md"))
    assert len(named) > 10
    assert [name for name in named if not (ROOT / "src/steelyard" / name).exists()] == []


def documented():
    """Yield the objects that the pages of the reference document."""
    for page in sorted((ROOT / "docs/api").glob("*.md")):
        for path in re.findall(r"^::: (\S+)", page.read_text(), re.MULTILINE):
            module, _, name = path.rpartition(".")
            yield getattr(importlib.import_module(module), name)


def public():
    """Yield all public objects of the package and its public modules."""
    for name in steelyard.__all__:
        yield getattr(steelyard, name)
    for package in PACKAGES:
        module = importlib.import_module(f"steelyard.{package}")
        own = [name for name in vars(module) if not name.startswith("_")]
        for name in getattr(module, "__all__", own):
            yield getattr(module, name)


def test_the_reference_has_every_public_name():
    """A page of the reference documents each public function and class."""
    found = set(map(id, documented()))
    wanted = [it for it in public() if inspect.isfunction(it) or inspect.isclass(it)]
    assert [it for it in wanted if id(it) not in found and "steelyard" in it.__module__] == []


# The site.


def in_nav(entry) -> Iterator[str]:
    """Yield the pages of a part of the navigation."""
    if isinstance(entry, str):
        yield entry
    for inner in entry.values() if isinstance(entry, dict) else entry:
        if not isinstance(entry, str):
            yield from in_nav(inner)


def navigation():
    """Return all pages of the navigation."""
    settings = (ROOT / "mkdocs.yml").read_text()
    return list(in_nav(yaml.safe_load(settings)["nav"]))


def test_the_navigation_has_every_page():
    """Each page is in the navigation exactly once, and exists."""
    docs = [page.removeprefix("docs/") for page in pages() if page.startswith("docs/")]
    assert sorted(navigation()) == sorted(docs)


@pytest.mark.slow
def test_the_site_builds_without_a_warning(tmp_path):
    """`make docs` succeeds, and no page loads a file from another site."""
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", tmp_path],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
    )
    # Without --quiet: that would hide warnings from --strict, too.
    assert done.returncode == 0, done.stderr
    for page in navigation():
        html = (tmp_path / page).with_suffix(".html").read_text()
        assert re.findall(r'<(?:script|img|iframe)[^>]*src="(?:https?:)?//', html) == []
        assert re.findall(r'<link[^>]*rel="stylesheet"[^>]*href="(?:https?:)?//', html) == []
        assert "<blockquote>" not in html  # Markdown renders an example without a fence so


@pytest.mark.slow
def test_the_figure_is_drawn(tmp_path):
    """`make figures` draws the figure that docs/how-it-works.md shows."""
    subprocess.run([sys.executable, ROOT / "scripts/flow_figure.py", tmp_path], check=True)
    shown = re.findall(r"\(images/(.*?)\)", text_of("docs/how-it-works.md"))
    assert [path.name for path in tmp_path.iterdir()] == shown
