"""Make text safe to print: any data enters; one line without control characters leaves."""


def printable(text: object) -> str:
    r"""Return text as one line, with each character that cannot be printed as an escape sequence.

    Control characters, line breaks, tabs, bidirectional overrides and lone surrogates become
    Python's escape sequences. Markup does not change: consoles and pages must treat the line as
    plain text.

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
