"""The consumer kit: the files by which a repository uses accord, put there once and kept in step since."""
