"""An implementor's result: a patch as a branch and a pull request, or why there is none."""
