"""Running agent CLIs and reporting their runs (contract ro)."""
