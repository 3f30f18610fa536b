"""Other people's workflow files: conformance to the runner contract, and a look over a repository."""
