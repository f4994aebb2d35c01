"""Solutions of ODEs to small tolerances, beside heyoka, diffrax and torchdiffeq."""
