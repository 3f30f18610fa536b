"""What agents did in a repository: one public record of each run, and reports from them."""
