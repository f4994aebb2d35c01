"""Objectives of ADBench and GradBench, each written once for any array module."""
