"""Detection and coloring of sparse Jacobians by difflab and by other packages."""
