import unittest

from invoice import text, totals


def line(quantity, price, rate):
    return {"quantity": quantity, "price": price, "rate": rate}


class TotalsTest(unittest.TestCase):
    def test_one_rate(self):
        result = totals([line("2", "19.99", "19")])
        self.assertEqual(result, {"net": "39.98", "vat": "7.60", "gross": "47.58"})

    def test_two_rates(self):
        result = totals([line("1", "10.00", "19"), line("4", "2.50", "7")])
        self.assertEqual(result, {"net": "20.00", "vat": "2.60", "gross": "22.60"})

    def test_text(self):
        self.assertEqual(
            text("A-1", [line("1", "5.00", "0")]),
            "Invoice A-1\n  1 x 5.00\nNet 5.00, VAT 0.00, total 5.00",
        )


unittest.main()
