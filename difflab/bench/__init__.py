"""The benchmarks: resumable sweeps, each with its columns, tasks and picture.

`registry` lists them.
"""
