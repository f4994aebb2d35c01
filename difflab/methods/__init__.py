"""Differentiation methods, one a file, behind the protocol of `protocol.py`.

Imports nothing, so that asking for one method loads only that one.
"""
