import sys
import unittest
from datetime import timedelta
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

from spans import format_span


class Writing(unittest.TestCase):
    def test_each_unit_is_written_once(self):
        self.assertEqual(format_span(timedelta(days=1, hours=2, minutes=3, seconds=4)), "1d 2h 3m 4s")

    def test_nothing_is_zero_seconds(self):
        self.assertEqual(format_span(timedelta()), "0s")
