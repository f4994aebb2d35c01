"""ADBench: GMM, BA, LSTM and HAND, each written once for difflab and its peers.

`files` reads the suite's data; `hand` defines an objective for any array module, as
`benchmarks.objectives` does the others; `problems` combines objectives and data; `tools` prepares
each tool's objective and Jacobian for timing; `answers` checks the results.

The suite is Šrajer, Kukelova, Fitzgibbon, *A benchmark of selected algorithmic differentiation
tools on some problems in computer vision and machine learning*, Optimization Methods and Software
33 (2018), kept as Microsoft ADBench.
"""
