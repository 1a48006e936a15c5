"""Text with markup and control characters, to be used as a key, a path or an argument."""

HOSTILE = (
    "[/x][bold]:boom:"  # Rich's markup, and its emoji codes
    "\x1b[31m\x1b]0;owned\x07\x9b31m\x7f"  # control sequences of terminals
    "\u202e\u2066\u2028\r\n\t"  # changes of the text direction, and line breaks
    "<script>document.title='owned'</script>"
)

HOSTILE_BYTES = b"\xff\x9b31m\x00\xe2\x82[bold]" + HOSTILE.encode()
"""Bytes that are not UTF-8, before the same text."""

HOSTILE_NAME = HOSTILE.replace("</script>", "<script>")
"""The same text as the end of a path. It contains one slash, so its folder must be created."""


def obeyed_by_a_terminal(output):
    """Return the characters of an output that a terminal would interpret, except line breaks."""
    return [character for character in output if not (character.isprintable() or character == "\n")]
