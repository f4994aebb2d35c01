"""ADBench: GMM, BA, LSTM and HAND, each written once for difflab and its peers.

`files` reads the suite's data, `gmm`, `ba`, `lstm` and `hand` say the objectives over any array
module, `maths` says what differs between the modules, `problems` joins text and data, `tools`
makes each tool's objective and Jacobian ready to be timed, and `answers` judges them.

The suite is Šrajer, Kukelova, Fitzgibbon, *A benchmark of selected algorithmic differentiation
tools on some problems in computer vision and machine learning*, Optimization Methods and Software
33 (2018), kept as Microsoft ADBench.
"""
