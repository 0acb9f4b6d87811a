"""A verdict and the run it is on, as an HTML page."""
