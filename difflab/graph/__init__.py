"""The computational graph: representation, evaluation, tracing, passes, repetition, drawing."""
