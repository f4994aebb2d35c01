"""The reverse sweep over a tape, and the replay of sweeps that come again."""
