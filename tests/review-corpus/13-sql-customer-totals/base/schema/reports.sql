-- What every customer ordered and paid, also those who did neither.

CREATE OR REPLACE VIEW customer_totals AS
SELECT
    c.id,
    c.name,
    c.country,
    COUNT(DISTINCT o.id) AS orders,
    COALESCE(SUM(p.cents), 0) AS paid_cents
FROM customers c
LEFT JOIN orders o ON o.customer_id = c.id
LEFT JOIN payments p ON p.order_id = o.id
GROUP BY c.id, c.name, c.country;

CREATE OR REPLACE VIEW customers_without_orders AS
SELECT id, name
FROM customer_totals
WHERE orders = 0
ORDER BY name;
