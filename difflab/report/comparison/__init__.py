"""A comparison as a table, a page, Markdown, CSV and a picture."""
