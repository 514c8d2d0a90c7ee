"""Totals of an invoice. The rules are in README.md."""


def totals(lines):
    """Returns net, VAT and gross amount of a list of {"quantity", "price", "rate"}."""
    net_by_rate = {}
    for line in lines:
        amount = round(float(line["quantity"]) * float(line["price"]), 2)
        rate = float(line["rate"])
        net_by_rate[rate] = net_by_rate.get(rate, 0.0) + amount
    net = sum(net_by_rate.values())
    vat = sum(round(amount * rate / 100, 2) for rate, amount in net_by_rate.items())
    return {"net": f"{net:.2f}", "vat": f"{vat:.2f}", "gross": f"{net + vat:.2f}"}


def text(number, lines):
    """Returns the printed invoice."""
    result = totals(lines)
    rows = [f"Invoice {number}"]
    rows += [f"  {line['quantity']} x {line['price']}" for line in lines]
    rows.append(f"Net {result['net']}, VAT {result['vat']}, total {result['gross']}")
    return "\n".join(rows)
