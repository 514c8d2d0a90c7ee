import unittest

from contacts import format_contacts, parse_contacts


class ContactsTest(unittest.TestCase):
    def test_parse(self):
        self.assertEqual(parse_contacts("name,mail\nAda,a@example.com\n\nBo\n"),
                         [{"name": "Ada", "mail": "a@example.com"}, {"name": "Bo", "mail": ""}])
        self.assertEqual(parse_contacts(""), [])

    def test_too_many_fields(self):
        with self.assertRaisesRegex(ValueError, "record 2"):
            parse_contacts("name\nAda\nBo,b@example.com\n")

    def test_sample(self):
        with open("data/sample.csv", encoding="utf-8", newline="") as file:
            records = parse_contacts(file.read())
        self.assertEqual([records[0]["name"], records[-1]["name"]], ["Ada Byron", "Emil Post"])

    def test_format(self):
        self.assertEqual(format_contacts(["name", "mail"], [{"name": "Ada"}]), "name,mail\nAda,\n")


unittest.main()
