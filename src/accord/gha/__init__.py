"""The GitHub Actions runtime as a step sees it: output file, step summary, annotations."""
