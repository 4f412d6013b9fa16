"""Calls by address change no bit of what agents do; the bits themselves are printed by `bits`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from numba import config


@pytest.mark.slow
@pytest.mark.skipif(bool(config.DISABLE_JIT), reason="needs the compiler")
def test_with_and_without_calls_by_address_the_bits_are_the_same() -> None:
    script = Path(__file__).with_name("bits.py")
    environment = {**os.environ, "PYTHONPATH": str(script.parents[1])}
    linked, plain = (
        subprocess.run(
            [sys.executable, str(script)],
            env={**environment, "FASTLBM_LINK": link}, capture_output=True, text=True, check=True,
        ).stdout
        for link in ("1", "0")
    )  # fmt: skip
    assert linked == plain
    assert len(set(linked.splitlines())) == 16
