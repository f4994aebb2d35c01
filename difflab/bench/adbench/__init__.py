"""ADBench: GMM, BA, LSTM and HAND, each written once for difflab and its peers.

`files` reads the suite's data; `gmm`, `ba`, `lstm` and `hand` define the objectives for any array
module, `maths` the functions that differ between the modules; `problems` combines objectives and
data; `tools` prepares each tool's objective and Jacobian for timing; `answers` checks the results.

The suite is Šrajer, Kukelova, Fitzgibbon, *A benchmark of selected algorithmic differentiation
tools on some problems in computer vision and machine learning*, Optimization Methods and Software
33 (2018), kept as Microsoft ADBench.
"""
