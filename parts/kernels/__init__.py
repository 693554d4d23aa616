"""Kernels: how candidates are found in one worker's windows."""
