"""The console in a real browser, over stores that other processes write."""
