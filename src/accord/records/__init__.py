"""The public records of runs, and the reports made from them."""
