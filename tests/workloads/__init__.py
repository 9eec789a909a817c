"""The real workloads hold what they promise."""
