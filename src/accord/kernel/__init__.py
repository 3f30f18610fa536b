"""What knows no contract: findings, documents, machines, graphs, Markdown, text safety, clock and errors."""
