"""Recorded outputs: what a later version must still write, read, hash and compute."""
