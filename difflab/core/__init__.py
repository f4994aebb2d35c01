"""The interception point and the form of a primitive."""
