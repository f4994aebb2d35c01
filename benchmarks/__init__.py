"""What measures difflab and others for the project's own claims; not part of the wheel.

``python -m benchmarks NAME`` in a checkout. Each benchmark is a sweep as those of `difflab.bench`
are, with its columns, tasks and picture; `gpu` is a measurement without a sweep.
"""
