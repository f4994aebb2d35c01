"""Functions in the formats of other programs: read from them, and written for them."""
