"""Reports: comparisons and evaluation traces as tables, pages, spreadsheets and pictures.

A report of a comparison accepts its record or its dictionary, and escapes the user's text.
"""
