"""Text that tries to be more than text, as a key, a path or an argument may."""

HOSTILE = (
    "[/x][bold]:boom:"  # Rich's markup, and its emoji codes
    "\x1b[31m\x1b]0;owned\x07\x9b31m\x7f"  # what a terminal obeys
    "\u202e\u2066\u2028\r\n\t"  # the direction of text, and ends of lines
    "<script>document.title='owned'</script>"
)

HOSTILE_NAME = HOSTILE.replace("</script>", "<script>")
"""The same as the end of a path: it has one slash, so its folder has to be made."""


def obeyed_by_a_terminal(output):
    """The characters of an output that are not only shown; lines end, as lines do."""
    return [character for character in output if not (character.isprintable() or character == "\n")]
