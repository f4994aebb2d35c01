"""What test suites use: cases of a marker, reports, stored gradients, written tests."""
