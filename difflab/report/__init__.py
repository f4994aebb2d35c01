"""Reports: a comparison as a table, a page, a spreadsheet or a picture.

Every report takes the record of a comparison or its dictionary, and escapes what the user
wrote. May import `difflab.lab` and everything below it; never `difflab.testing`.
"""
