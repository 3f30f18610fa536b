"""An implementor's result: a patch as a branch and a pull request, or the reason why it has no patch."""
