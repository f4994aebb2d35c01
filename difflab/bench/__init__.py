"""The three pictures that the lab is for, as resumable sweeps: accuracy, swell and cost.

Each module says what its rows are (`LAYOUT`) and gives the tasks that measure them.
"""
