"""The checker of derivatives of functions of trees of arguments; an array is a tree of one leaf."""
