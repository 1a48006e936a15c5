"""Every design page has the same parts, is listed once, and names files that exist."""

import re

import pytest

from tests.documents import ROOT, pages, text_of

INDEX = "docs/design/index.md"
PAGES = [page for page in pages() if page.startswith("docs/design/") and page != INDEX]
HEADINGS = ["Context", "Decision", "Evidence"]
LONGEST = 60


@pytest.mark.parametrize("page", PAGES)
def test_a_page_has_context_decision_and_evidence(page):
    found = re.findall("^## (.*)$", text_of(page), re.MULTILINE)
    assert found in (HEADINGS, [*HEADINGS, "What it replaced"])
    assert len(text_of(page).splitlines()) <= LONGEST


@pytest.mark.parametrize("page", PAGES)
def test_files_that_a_page_names_exist(page):
    named = re.findall(r"`((?:\w+/)*(?:\w+\.py|\w+/))`", text_of(page))
    places = (ROOT / "src/steelyard", ROOT)
    assert [name for name in named if not any((at / name).exists() for at in places)] == []


def test_the_index_lists_every_page_once_under_its_title():
    listed = re.findall(r"^- \[(.*)\]\((.*)\)$", text_of(INDEX), re.MULTILINE)
    titles = [(text_of(page).split("\n", 1)[0], page.split("/")[-1]) for page in PAGES]
    assert sorted(titles) == sorted((f"# {title}", file) for title, file in listed)
