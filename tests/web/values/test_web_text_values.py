from datetime import UTC, datetime
from decimal import Decimal

from nutbeam.web.values.text_numbers import Price, read_decimal, read_price
from nutbeam.web.values.text_times import read_time

# Text, currency that is known from elsewhere, amount and currency.
PRICES = (
    ("1.234,56 €", "", "1234.56", "EUR"),
    ("$1,234", "", "1234", None),
    ("$1,234", "CAD", "1234", "CAD"),
    ("US $1,234.5", "CAD", "1234.5", "USD"),
    ("from 9.99", "", "9.99", None),
    ("From 26 to 50 €", "", "26", "EUR"),
    ("40-50 zł", "", "40", "PLN"),
    ("10 % off: 20 CHF", "", "20", "CHF"),
    ("1'234.50 CHF", "", "1234.50", "CHF"),
    ("Rs. 1,23,456.78", "INR", "123456.78", "INR"),
    ("1 299,- Kč", "", "1299", "CZK"),
    ("1\u202f299,00\xa0€", "", "1299.00", "EUR"),
    ("-$5", "", "-5", None),
    ("- $5", "", "5", None),  # a dash before the price
    ("\u0661\u0662\u0663\u066b\u0664\u0665 ر.س", "", "123.45", "SAR"),
    ("\uff11\uff12\uff13\u5186", "", "123", "JPY"),
    ("118, 99 TL", "", "118.99", "TRY"),
    ("Free!", "EUR", "0", "EUR"),
    ("19.990000000000002", "EUR", "19.99", "EUR"),
    ("1e3", "", "1000", None),
)
# Text and, for both forms of decimals, a number or the reason why there is none.
NUMBERS = (
    ("1.299", "1299", "1.299"),
    ("1,299", "1299", "1299"),
    ("0.125 kg", "0.125", "0.125"),
    ("12,5", "12.5", "125"),
    ("1.2.3", "unclear_number", "unclear_number"),
    ("1,23,4", "unclear_number", "1234"),
    ("half", "no_number", "no_number"),
    ("NaN", "no_number", "no_number"),
    ("Infinity", "no_number", "no_number"),
    ("10 m\u00b2", "10", "10"),
    ("", "empty", "empty"),
    ("9" * 30, "out_of_range", "out_of_range"),
    ("1e999", "out_of_range", "out_of_range"),
    ("1 " * 200, "too_long", "too_long"),
)
# Text, order of days and months, and the time or the reason why there is none.
TIMES = (
    ("2024-03-05", "", "2024-03-05T00:00"),
    ("2024-03-05T10:11:12+02:00", "", "2024-03-05T08:11:12"),
    ("Tue, 05 Mar 2024 10:00:00 GMT", "", "2024-03-05T10:00"),
    ("Tue Mar 05 2024 10:00:00 GMT+0100 (CET)", "", "2024-03-05T09:00"),
    ("Tue Mar 05 10:00:00 CET 2024", "", "2024-03-05T09:00"),
    ("March 5, 2024 10:00 am EST", "", "2024-03-05T15:00"),
    ("5 March 2024 10:00 MAR", "", "2024-03-05T10:00"),  # no zone that is known
    ("1709632800", "", "2024-03-05T10:00"),
    ("March 5th, 2024 at 3:07 PM", "", "2024-03-05T15:07"),
    ("5 Mar 2024 12:07 a.m.", "", "2024-03-05T00:07"),
    ("Mar 5, 2024 3:07pm", "", "2024-03-05T15:07"),
    ("5. März 2024, 12:00 Uhr", "", "2024-03-05T12:00"),
    ("5 de marzo de 2024", "", "2024-03-05T00:00"),
    ("5 марта 2024", "", "2024-03-05T00:00"),
    ("2024\u5e743\u67085\u65e5 12:30", "", "2024-03-05T12:30"),
    ("\u0665 مارس \u0662\u0660\u0662\u0664", "", "2024-03-05T00:00"),
    ("5.3.2024", "", "2024-03-05T00:00"),
    ("31/12/2023", "", "2023-12-31T00:00"),
    ("3/5/2024", "", "unclear_date"),
    ("3/5/2024", "dmy", "2024-05-03T00:00"),
    ("3/5/2024", "mdy", "2024-03-05T00:00"),
    ("5 listopada 2023", "", "unclear_date"),  # October or November
    ("40000-01-01", "", "out_of_range"),
    ("+40000-01-01T00:00:00Z", "", "out_of_range"),
    ("-0044-03-15", "", "out_of_range"),
    ("9999-12-31T23:59:59-23:59", "", "out_of_range"),
    ("5 ม.ค. 2567", "", "out_of_range"),  # of another calendar
    ("2024-02-30", "", "no_date"),
    ("2024-03", "", "incomplete_date"),
    ("March 2024", "", "incomplete_date"),
    ("yesterday", "", "no_date"),
    ("", "", "empty"),
    ("5 March " * 30, "", "too_long"),
)


def test_a_price_is_read_with_its_currency():
    for text, currency, amount, code in PRICES:
        assert read_price(text, currency).value == Price(Decimal(amount), code), text


def test_a_number_is_read_or_has_a_reason():
    for text, by_itself, with_point in NUMBERS:
        for point, wanted in (("", by_itself), (".", with_point)):
            number = read_decimal(text, point)
            assert (number.reason or number.value) == (
                wanted if number.reason else Decimal(wanted)
            ), text


def test_a_time_is_read_or_has_a_reason():
    for text, order, wanted in TIMES:
        time = read_time(text, order)
        if time.reason:
            assert time.reason == wanted, text
        else:
            moment = datetime.fromisoformat(wanted).replace(tzinfo=UTC)
            assert time.value == moment.timestamp() * 1000, text
