"""The target ``python``: straight-line source over `math`, for one point at a time."""
