"""The only place that knows how to speak to GitHub: our own small types, and behind them PyGithub."""
