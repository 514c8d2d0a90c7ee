"""Totals of an invoice. The rules are in README.md."""

from decimal import ROUND_HALF_UP, Decimal, localcontext

CENT = Decimal("0.01")


def cents(amount):
    """Rounds to the cent. ROUND_HALF_UP rounds a half away from zero for both signs."""
    return amount.quantize(CENT, rounding=ROUND_HALF_UP)


def totals(lines):
    """Returns net, VAT and gross amount of a list of {"quantity", "price", "rate"}."""
    with localcontext() as context:
        context.prec = 60
        net_by_rate = {}
        for line in lines:
            amount = cents(Decimal(line["quantity"]) * Decimal(line["price"]))
            rate = Decimal(line["rate"])
            net_by_rate[rate] = net_by_rate.get(rate, Decimal("0.00")) + amount
        net = sum(net_by_rate.values(), Decimal("0.00"))
        # Adding zero turns the -0.00 of a tiny credit note into 0.00.
        vat = sum((cents(amount * rate / 100) for rate, amount in net_by_rate.items()), Decimal("0.00"))
        return {"net": f"{net:.2f}", "vat": f"{vat:.2f}", "gross": f"{net + vat:.2f}"}


def text(number, lines):
    """Returns the printed invoice."""
    result = totals(lines)
    rows = [f"Invoice {number}"]
    rows += [f"  {line['quantity']} x {line['price']}" for line in lines]
    rows.append(f"Net {result['net']}, VAT {result['vat']}, total {result['gross']}")
    return "\n".join(rows)
