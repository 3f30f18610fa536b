"""Git, called as a program: patches, branches, snapshots, and the paths that need care."""
