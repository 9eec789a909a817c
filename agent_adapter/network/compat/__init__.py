"""Names and call forms of `ag2.network`, as thin layers over this package's own.

A name that this package has anyway is not repeated here. `paths` holds the module paths of AG2 that
have no module of their own in this package.
"""
