"""The compiled core. Nothing in here imports from the Python layer above it."""
