"""Totals of an invoice. The rules are in README.md."""

from decimal import Decimal

CENT = Decimal("0.01")


def totals(lines):
    """Returns net, VAT and gross amount of a list of {"quantity", "price", "rate"}."""
    net_by_rate = {}
    for line in lines:
        amount = (Decimal(line["quantity"]) * Decimal(line["price"])).quantize(CENT)
        rate = Decimal(line["rate"])
        net_by_rate[rate] = net_by_rate.get(rate, Decimal(0)) + amount
    net = sum(net_by_rate.values(), Decimal(0))
    vat = sum(((amount * rate / 100).quantize(CENT) for rate, amount in net_by_rate.items()), Decimal(0))
    return {"net": f"{net:.2f}", "vat": f"{vat:.2f}", "gross": f"{net + vat:.2f}"}


def text(number, lines):
    """Returns the printed invoice."""
    result = totals(lines)
    rows = [f"Invoice {number}"]
    rows += [f"  {line['quantity']} x {line['price']}" for line in lines]
    rows.append(f"Net {result['net']}, VAT {result['vat']}, total {result['gross']}")
    return "\n".join(rows)
