"""Plans: blocks and cycles of actions, and bounds on what any policy can collect."""
