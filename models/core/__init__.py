"""The machinery of every model: the search, the campaigns, the command line."""
