"""Checks of one array by component: numeric derivatives with error bars, and verdicts."""
