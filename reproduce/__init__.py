"""The paper's figures, one module each: `python -m reproduce NAME`."""
