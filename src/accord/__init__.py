"""accord: contracts for coding agents on GitHub.

An agent only writes down its result; accord checks the result against its contract, turns it into the
smallest list of operations, carries them out exactly once, and reports.
"""

__version__ = "0.1.0"

from accord import kinds as kinds
