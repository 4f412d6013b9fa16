"""Benchmarks: what an evaluation, a plan or an episode costs, always beside a yardstick of the same run."""
