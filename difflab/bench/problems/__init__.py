"""Every method on the library of problems: who is right, how exact, how fast."""
