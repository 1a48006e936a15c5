"""Text that is safe to print: data enters, one line leaves that a terminal only shows."""


def printable(text: object) -> str:
    r"""Any text in one line, with everything that cannot be printed written as an escape.

    Control characters, line breaks, tabs, bidirectional overrides and lone surrogates are escaped
    as Python writes them. Markup stays as it is: consoles and pages have to treat the line as plain
    text.

    >>> print(printable("two\nlines, \x1b[31mred"))
    two\nlines, \x1b[31mred
    >>> printable("日本 & é")
    '日本 & é'
    """
    line = str(text)
    return line if line.isprintable() else "".join(map(_visible, line))


def _visible(character: str) -> str:
    if character.isprintable():
        return character
    return character.encode("unicode_escape").decode()
