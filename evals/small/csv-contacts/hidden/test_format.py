import unittest

from contacts import format_contacts, parse_contacts


class FormatTest(unittest.TestCase):
    def check(self, text, values):
        self.assertEqual([record["name"] for record in parse_contacts(text)], values)

    def test_comma_and_quote(self):
        self.check('name,mail\n"Doe, Jane",j@example.com\n', ["Doe, Jane"])
        self.check('name\n"say ""hi"""\n', ['say "hi"'])

    def test_line_break_in_a_field(self):
        self.check('name,mail\n"a\nb",x\nc,y\n', ["a\nb", "c"])
        self.check('name\r\n"a\r\nb"\r\nc\r\n', ["a\r\nb", "c"])
        self.check('name\n"a\n\nb"\n', ["a\n\nb"])

    def test_only_line_breaks_end_a_record(self):
        self.check("name\na\u2028b\nc\x0cd\n", ["a\u2028b", "c\x0cd"])

    def test_blank_lines_and_missing_end(self):
        self.check("name\n\na\n\n\nb", ["a", "b"])

    def test_too_many_fields_are_counted_by_record(self):
        with self.assertRaisesRegex(ValueError, "record 2"):
            parse_contacts('name\n"a\nb"\nc,d\n')
        self.assertEqual(parse_contacts("name,mail\nBo\n"), [{"name": "Bo", "mail": ""}])

    def test_written_text(self):
        self.assertEqual(format_contacts(["name", "mail"], [{"name": "Doe, J", "mail": "x"}]),
                         'name,mail\n"Doe, J",x\n')

    def test_round_trip(self):
        header = ["name", "the, note"]
        values = ["", " a ", "a,b", 'a"b', "a\nb", "a\r\nb", '"', "\n", "é\u2028", ",,"]
        records = [{"name": one, "the, note": two} for one in values for two in values]
        self.assertEqual(parse_contacts(format_contacts(header, records)), records)

    def test_round_trip_of_one_column(self):
        records = [{"name": "a"}, {"name": ""}, {"name": "b"}]
        self.assertEqual(parse_contacts(format_contacts(["name"], records)), records)


unittest.main()
