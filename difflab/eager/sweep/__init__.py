"""The reverse sweep over a tape, and the replay of sweeps over tapes of the same structure."""
