"""Many runs: agents, seeds, environments and horizons, and what comes out of them."""
