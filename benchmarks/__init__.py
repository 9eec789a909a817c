"""Benchmarks that measure the library side by side with what it is compared to, in one run."""
