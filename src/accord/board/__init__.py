"""The read model: what a repository's agents did and wait for, from GitHub and from the documents of its folder."""
