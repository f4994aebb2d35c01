"""Operations of the user's own, with derivatives written by hand."""
