"""`python -m steelyard.cli`."""

from steelyard.cli import app

app()
