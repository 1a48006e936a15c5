"""Recorded outputs, which later versions must reproduce: formats, hashes and numbers."""
