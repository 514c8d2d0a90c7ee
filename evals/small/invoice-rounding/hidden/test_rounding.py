import unittest

from invoice import text, totals


def line(quantity, price, rate):
    return {"quantity": quantity, "price": price, "rate": rate}


class RoundingTest(unittest.TestCase):
    def check(self, lines, net, vat, gross):
        self.assertEqual(totals(lines), {"net": net, "vat": vat, "gross": gross})

    def test_the_reported_invoice(self):
        self.check([line("1", "1.015", "0")], "1.02", "0.00", "1.02")

    def test_half_a_cent_goes_up_after_an_even_cent(self):
        self.check([line("1", "0.125", "0")], "0.13", "0.00", "0.13")
        self.check([line("1", "1.005", "0")], "1.01", "0.00", "1.01")
        self.check([line("0.5", "0.25", "0")], "0.13", "0.00", "0.13")

    def test_credit_notes_are_rounded_away_from_zero(self):
        self.check([line("-1", "1.005", "0")], "-1.01", "0.00", "-1.01")
        self.check([line("-1", "0.50", "5")], "-0.50", "-0.03", "-0.53")

    def test_vat(self):
        self.check([line("1", "0.50", "5")], "0.50", "0.03", "0.53")
        self.check([line("1", "2.50", "7")], "2.50", "0.18", "2.68")

    def test_vat_is_computed_once_per_rate(self):
        self.check([line("1", "0.10", "5")] * 3, "0.30", "0.02", "0.32")
        self.check([line("1", "0.25", "10"), line("1", "0.25", "10.0")], "0.50", "0.05", "0.55")

    def test_many_lines(self):
        self.check([line("0.001", "10", "0")] * 1000, "10.00", "0.00", "10.00")

    def test_large_amounts(self):
        self.check([line("1", "90071992547409.93", "0")], "90071992547409.93", "0.00", "90071992547409.93")

    def test_an_empty_invoice(self):
        self.check([], "0.00", "0.00", "0.00")

    def test_the_text(self):
        self.assertTrue(text("B", [line("1", "0.125", "0")]).endswith("Net 0.13, VAT 0.00, total 0.13"))


unittest.main()
