"""Other differentiation packages as methods: one file each, named by the package.

They are optional (the extra ``peers``), imported only when one is prepared, and run only when they
are selected. They receive the function by evaluating its graph with their own values, and use only
their own derivative rules.
"""
