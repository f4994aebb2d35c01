"""Support of test suites: cases of a marker, reports, stored gradients, generated tests."""
