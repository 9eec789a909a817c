"""The benchmarks run and report."""
