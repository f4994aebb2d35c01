"""Reports: a comparison as a table, a page, a spreadsheet or a picture.

Every report takes the record of a comparison or its dictionary, and escapes what the user
wrote.
"""
