"""Plans on sets of arms."""
