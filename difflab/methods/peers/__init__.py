"""Other packages that differentiate, as methods: one file each, named by the package.

They are optional (the extra ``peers``), imported only when one is prepared, and run only when
they are asked for. They get the function as its graph, folded over their own values, and use
their own rules: none of difflab's.
"""
